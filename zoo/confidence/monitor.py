"""Whether a calibration still holds: a test of new queries, and an alarm on labelled answers."""

import dataclasses

import numpy as np

from zoo.confidence import checks
from zoo.confidence.guarantees import one_of_each

LEAST_QUERIES = 20  # below which no test would see anything
KEPT = 500  # queries that travel with a calibration
DIRECTIONS = 8
LEVEL = 0.05  # probability of an alarm, ever, while the promise is kept
_BOLDEST = 0.5  # share of the most that can be bet


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a calibration can still promise.

    ```python
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(400, 20))
    confidence = zoo.confidence.Confidence.fit(similarity, similarity.max(axis=1) > 1.5)
    confidence.check(rng.normal(size=(100, 20))).sentence
    ```

    Attributes:
        state: `"holds"`, `"drifted"`, `"other gallery"` or `"too few queries"`.
        sentence: the same for a reader.
        p_value: of the drift test, at most 1, or None where it was not made.
        feature: the feature or direction that differs most, or None.
    """

    state: str
    sentence: str
    p_value: float | None = None
    feature: str | None = None

    @property
    def holds(self):
        """Whether probabilities and guarantees may be used."""
        return self.state == "holds"


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
    """A sample of a calibration's queries, to compare new ones with.

    Attributes:
        names: of the columns: the features, and `query direction 1` … where there are directions.
        sample: `(n, columns)`, at most 500 queries.
        centre, directions: `(dim,)` and `(r, dim)`, mean and leading principal directions of the
            vectors of one half of the calibration queries, or None. What a query asks for shows in
            them even where its scores look as always. The sample is of the other half: along
            directions of their own, queries lie farther apart than any others do.
    """

    names: tuple
    sample: np.ndarray
    centre: np.ndarray | None = None
    directions: np.ndarray | None = None

    @classmethod
    def fit(cls, names, features, queries=None, seed=0, groups=None):
        """Of `(Q, features)` with their names, and the queries' vectors `(Q, dim)` or None.

        Of each group one query is kept, see `zoo.confidence.guarantees.numbered`.
        """
        centre = directions = None
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(features))
        if groups is not None:
            chosen = rng.permutation(one_of_each(groups, rng))
        if queries is not None:
            queries = _vectors(queries, len(features))
            fitted, chosen = chosen[::2], chosen[1::2]
            # As they are stored, so that reading a calibration again changes nothing.
            centre = queries[fitted].mean(axis=0).astype(np.float32).astype(float)
            axes = _principal_axes(queries[fitted] - centre)
            directions = axes.astype(np.float32).astype(float)
            names = (*names, *direction_names(len(directions)))
        whole = cls(tuple(names), np.empty((0, 0)), centre, directions)
        sample = whole.columns(features, queries)[chosen[:KEPT]]
        return dataclasses.replace(whole, sample=sample)

    def columns(self, features, queries=None):
        """Features and, with their vectors, directions of queries: float32 `(Q, columns)`."""
        parts = [features]
        if self.directions is not None and queries is not None:
            queries = _vectors(queries, len(features), len(self.centre))
            parts.append((queries - self.centre) @ self.directions.T)
        return np.concatenate(parts, axis=1).astype(np.float32)

    def drift_test(self, features, queries=None):
        """Tests whether queries come from the distribution of the calibration's.

        The greatest of the two-sample Kolmogorov–Smirnov statistics of all columns, with
        Bonferroni's correction: with exchangeable queries p ≤ a happens in at most a share a of the
        cases, whatever the dependence between columns. It sees a change of the queries, not one of
        what is right at equal queries; without the truth nothing can.

        Args:
            features: `(Q, features)` of new queries.
            queries: `(Q, dim)`, their vectors; without them directions are not compared.

        Returns:
            `(p, name of the column that differs most)`.

        Reference: Rabanser, Günnemann and Lipton, "Failing Loudly: An Empirical Study of Methods
            for Detecting Dataset Shift", NeurIPS 2019, which tests reduced dimensions like this.
        """
        from scipy.stats import ks_2samp  # here: a question needs none of it

        columns = self.columns(features, queries)
        values = [
            ks_2samp(self.sample[:, i], columns[:, i]).pvalue for i in range(columns.shape[1])
        ]
        lowest = int(np.argmin(values))
        return min(1.0, float(values[lowest]) * len(values)), self.names[lowest]


def direction_names(count):
    """The names of the columns of `count` directions."""
    return tuple(f"query direction {number + 1}" for number in range(count))


def _principal_axes(vectors):
    """The leading directions of `(n, dim)`, greatest variance first, `(r, dim)`."""
    vectors = vectors.astype(np.float32)  # as the axes are stored
    dim = vectors.shape[1]
    count = min(DIRECTIONS, *vectors.shape)
    # A tenth of the time of all singular vectors.
    from scipy.linalg import eigh  # here: a question needs none of it

    axes = eigh(vectors.T @ vectors, subset_by_index=(dim - count, dim - 1))[1]
    return axes.T[::-1]


def _vectors(queries, count, dim=None):
    queries = checks.matrix(queries, "queries")
    if len(queries) != count or (dim is not None and queries.shape[1] != dim):
        raise ValueError(
            f"`queries` must be ({count}, {'dim' if dim is None else dim}), a vector each; "
            f"received shape {queries.shape}"
        )
    return queries


def check(confidence, features, queries, gallery, level):
    """The `Verdict` on new queries, see `Confidence.check`."""
    level = checks.share(level, "level")
    made_of = f"calibrated on {confidence.num_queries:,} queries"
    if confidence.gallery is not None and gallery is not None:
        difference = confidence.gallery.difference(gallery)
        if difference is not None:
            return Verdict(
                "other gallery",
                f"This is another gallery than the one it was {made_of} of: {difference}. Nothing "
                "can be promised; calibrate on this gallery.",
            )
    if len(features) < LEAST_QUERIES:
        return Verdict(
            "too few queries",
            f"{len(features)} queries are too few to see whether they are like those it was "
            f"{made_of} of; its promises hold only if they are.",
        )
    p_value, feature = confidence.reference.drift_test(features, queries)
    if p_value <= level:
        return Verdict(
            "drifted",
            f"These queries are not like those it was {made_of} of: {feature} differs "
            f"(p = {p_value:.1g}). No probability and no guarantee can be promised; calibrate on "
            "queries like these.",
            p_value,
            feature,
        )
    unseen = (
        ""
        if confidence.gallery is not None and gallery is not None
        else (", if the gallery is the same")
    )
    return Verdict(
        "holds",
        f"It was {made_of} and these are like them (p = {p_value:.2g}): probabilities and "
        f"guarantees hold{unseen}.",
        p_value,
        feature,
    )


@dataclasses.dataclass(frozen=True)
class Alarm:
    """What a monitor says of a stream of answers.

    ```python
    print(zoo.confidence.Alarm(100, 12, 20.0, 0.4, None).sentence)
    ```

    Attributes:
        answers: how many there were.
        wrong: how many of them were wrong.
        promised: how many were promised to be wrong at most.
        wealth: what bets against the promise have won, 1 before the first answer.
        at: the number of answers at which the alarm was raised, or None.
    """

    answers: int
    wrong: int
    promised: float
    wealth: float
    at: int | None

    @property
    def sentence(self) -> str:
        """The same for a reader."""
        counts = (
            f"{self.wrong:,} of {self.answers:,} answers are wrong, {self.promised:.1f} promised"
        )
        if self.at is None:
            return f"{counts}; no alarm."
        return f"{counts}; alarm at answer {self.at:,}: errors are more frequent than promised."


def monitored(wrong, promised, level=LEVEL) -> Alarm:
    """Bets against a promise of at most so many errors, answer by answer.

    ```python
    wrong = np.arange(400) % 2 == 0  # every other one
    zoo.confidence.monitored(wrong, 0.2).at  # an alarm after some dozens
    ```

    Proof. Under the promise answer t is wrong with a probability of at most m_t given all before.
    Wealth is multiplied by 1 + λ_t (x_t − m_t) with λ_t ≥ 0 chosen before x_t is seen and below
    1/m_t, so it is a nonnegative supermartingale, and by Ville's inequality it ever reaches 1/level
    with a probability of at most `level`: the stream may be looked at after every answer. So is a
    mixture of such wealths. One starts at each of the answers 1, 5, 17, 65 …, with the weight
    1 / (j (j + 1)), so that a change after a long good time is noticed.

    Args:
        wrong: `(T,)` booleans in the order of the answers.
        promised: m, how likely an answer may be wrong at most: a number, or `(T,)`, as one less the
            probability that was said.
        level: in (0, 1), of a false alarm, ever.

    Raises:
        ValueError: if shapes or ranges do not fit.

    Reference: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
        JRSS B 2024, whose aGRAPA chooses λ; Podkopaev and Ramdas, "Tracking the risk of a deployed
        model and detecting harmful distribution shifts", ICLR 2022.
    """
    wrong = checks.truths(wrong, "wrong", len(wrong))
    promised = np.broadcast_to(np.asarray(promised, np.float64), wrong.shape)
    if ((promised < 0) | (promised > 1) | np.isnan(promised)).any():
        raise ValueError("`promised` must be in [0, 1]")
    path = wealth(wrong[None], promised[None])[0]
    reached = np.flatnonzero(path >= 1 / checks.share(level, "level"))
    return Alarm(
        len(wrong),
        int(wrong.sum()),
        float(promised.sum()),
        float(path[-1]),
        int(reached[0]) + 1 if len(reached) else None,
    )


def wealth(wrong, promised):
    """The wealth after every answer of some streams, `(streams, T)`; arguments of that shape."""
    streams, length = wrong.shape
    starts = [0, *(4**j for j in range(1, length.bit_length()) if 4**j < length)]
    weights = np.array([1 / (j * (j + 1)) for j in range(1, len(starts) + 1)])
    weights[-1] += 1 - weights.sum()
    gains, total, squares = (np.zeros((len(starts), streams)) for _ in range(3))
    excess, limits = wrong - promised, _BOLDEST / np.maximum(promised, 1e-3)
    found = np.empty((streams, length))
    for t in range(length):
        now, begun = excess[:, t], sum(start <= t for start in starts)
        sums, spread = total[:begun], squares[:begun]
        # The spread as if half an answer of each kind had come before.
        bet = np.clip(sums / (spread + 0.25), 0.0, limits[:, t])
        gains[:begun] += np.log1p(bet * now)
        sums += now
        spread += now**2
        found[:, t] = weights @ np.exp(np.minimum(gains, 600.0))
    return found
