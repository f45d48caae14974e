"""How good a confidence is, and whether new queries are like those it was calibrated on."""

import dataclasses

import numpy as np

from zoo.confidence import checks
from zoo.confidence.guarantees import one_of_each

ABSTENTION_RATES = np.linspace(0, 1, 11)[:-1]  # to the last digit, as MTEB rounds by it
LEAST_QUERIES = 20  # below which no test would see anything
KEPT = 500  # queries that travel with a calibration
DIRECTIONS = 8


def abstention_auc(confidence, correct):
    """Normalised area under accuracy over abstention rates 0, 0.1 … 0.9: MTEB's nAUC.

    At the rate r the least confident share r of the queries is left out. The area is set against
    that of leaving out at random (the plain accuracy at every rate) and that of an oracle that
    leaves out wrong ones first.

    Args:
        confidence: `(Q,)`, higher is surer.
        correct: `(Q,)` booleans.

    Returns:
        A float: 0 for random, 1 for an oracle, negative for worse than random; NaN where all are
        right or all are wrong, since then there is nothing to gain. Queries of equal confidence
        are left out in random order: the expectation over it is taken exactly.

    Raises:
        ValueError: if shapes differ, or a confidence is not finite.

    Reference: Gisserot-Boukhlef et al., "Towards Trustworthy Reranking: A Simple yet Effective
        Abstention Mechanism", 2024; MTEB's abstention metrics.

    Released code differs: MTEB takes the order of equal confidences as it comes.
    """
    confidence = checks.vector(confidence, "confidence")
    correct = checks.truths(correct, "correct", len(confidence))
    if correct.all() or not correct.any():
        return float("nan")
    flat = correct.mean()
    area, oracle = (
        np.trapezoid(_accuracy(score, correct), ABSTENTION_RATES) for score in (confidence, correct)
    )
    flat = flat * (ABSTENTION_RATES[-1] - ABSTENTION_RATES[0])
    return float((area - flat) / (oracle - flat))


def expected_calibration_error(probability, correct, bins=10):
    """The mean gap between a probability and how often it came true, over bins of equal count.

    Args:
        probability: `(Q,)` in [0, 1].
        correct: `(Q,)` booleans.
        bins: number of bins of rising probability; fewer where there are fewer queries. Queries of
            equal probability count by their mean truth, so the order of rows changes nothing.

    Returns:
        A float in [0, 1], 0 for a calibrated one. A calibrated probability of Q queries has an
        expected value near √(p(1 − p)·bins / Q)·0.8, not 0.

    Raises:
        ValueError: if shapes differ or a probability is not in [0, 1].

    Reference: Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", AAAI
        2015; bins of equal count after Nguyen and O'Connor, EMNLP 2015.
    """
    diagram = reliability(probability, correct, bins)
    return float(
        np.average(np.abs(diagram["probability"] - diagram["accuracy"]), weights=diagram["count"])
    )


def reliability(probability, correct, bins=10):
    """A reliability diagram: mean probability and share of right answers, in bins of equal count.

    Args and Raises: as `expected_calibration_error`.

    Returns:
        A dict of `(bins,)` arrays: `probability` and `accuracy`, means of each bin, and `count`.
    """
    probability = checks.vector(probability, "probability")
    correct = checks.truths(correct, "correct", len(probability))
    if (probability < 0).any() or (probability > 1).any():
        raise ValueError("`probability` must be in [0, 1]")
    bins = min(checks.whole(bins, "bins"), len(probability))
    order = np.argsort(probability, kind="stable")
    parts, accuracy = np.array_split(order, bins), _expected(probability, correct)
    return {
        "probability": np.array([probability[part].mean() for part in parts]),
        "accuracy": np.array([accuracy[part].mean() for part in parts]),
        "count": np.array([len(part) for part in parts]),
    }


def confidence_quality(confidence, correct, bins=10):
    """The figures of a table about confidence.

    Args:
        confidence: `(Q,)`, higher is surer.
        correct: `(Q,)` booleans.
        bins: of the rank correlation.

    Returns:
        A dict: `nauc` (`abstention_auc`); `aurc`, `oracle_aurc` and `random_aurc`
        (`zoo.metrics.risk_coverage` of the errors); `spearman_of_bins`, of the place of a bin of
        falling confidence and its accuracy, −1 for a confidence that orders them all; and where
        the confidence is in [0, 1] also `calibration_error`.

    Raises:
        ValueError: as `abstention_auc`.
    """
    confidence = checks.vector(confidence, "confidence")
    correct = checks.truths(correct, "correct", len(confidence))
    from zoo.metrics import risk_coverage, spearman  # here: a question needs none of it

    curve = risk_coverage(-confidence, ~correct)
    parts = np.array_split(np.argsort(-confidence, kind="stable"), min(bins, len(confidence)))
    expected = _expected(confidence, correct)
    accuracy = [expected[part].mean() for part in parts]
    result = {
        "nauc": abstention_auc(confidence, correct),
        **{name: curve[name] for name in ("aurc", "oracle_aurc", "random_aurc")},
        "spearman_of_bins": spearman(np.arange(len(parts)), accuracy),
    }
    if confidence.min() >= 0 and confidence.max() <= 1:
        result["calibration_error"] = expected_calibration_error(confidence, correct, bins)
    return result


def _accuracy(confidence, correct):
    """Expected accuracy of the most confident share 1 − r, for every abstention rate r."""
    confidence = confidence.astype(float)
    total = np.cumsum(_expected(confidence, correct)[np.argsort(-confidence)])
    left = np.maximum(1, len(correct) - np.round(len(correct) * ABSTENTION_RATES).astype(int))
    return total[left - 1] / left


def _expected(confidence, correct):
    """The truth of each query, or its mean over queries of equal confidence, in any order."""
    _, group, size = np.unique(confidence, return_inverse=True, return_counts=True)
    return (np.bincount(group, correct) / size)[group]


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
