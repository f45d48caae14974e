"""Whether new queries are like those of a calibration: a two-sample test, and what follows."""

import dataclasses

import numpy as np
from scipy.linalg import eigh
from scipy.stats import ks_2samp

from zoo.confidence import checks
from zoo.confidence.groups import one_of_each

LEAST_QUERIES = 20  # below which no test would see anything
KEPT = 500  # queries that travel with a calibration
DIRECTIONS = 8


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
        """Of `(Q, features)`, and of the vectors `(Q, dim)` of the same queries or None.

        Args:
            groups: numbers of `zoo.confidence.groups.numbered`; of each one query is kept.

        Raises:
            ValueError: if the vectors are not finite or of another number of queries.
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

        Raises:
            ValueError: if the vectors do not fit.

        Reference: Rabanser, Günnemann and Lipton, "Failing Loudly: An Empirical Study of Methods
            for Detecting Dataset Shift", NeurIPS 2019, which tests reduced dimensions like this.
        """
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
    """The `Verdict` on new queries, see `Confidence.check`.

    Raises:
        ValueError: if `level` is not between 0 and 1.
    """
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
