"""How well an uncertainty tells right answers from wrong ones."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from halo_search.embeddings import checks
from zoo.metrics.ranks import QueryRanks, rank_queries
from zoo.metrics.statistics import RESAMPLES, Estimate, bootstrap, spearman


def recall_by_uncertainty(
    similarity: Any, relevance: Any, uncertainty: ArrayLike, k: int = 1, bins: int = 10
) -> dict[str, np.ndarray]:
    """Recall@K of the queries in bins of rising uncertainty.

    ```python
    similarity, relevance = np.eye(4)[:, [0, 1, 3, 2]], np.eye(4, dtype=bool)
    recall_by_uncertainty(similarity, relevance, [0.1, 0.2, 0.3, 0.4], bins=2)["recall"]  # [1, 0]
    ```

    Bins are quantiles of the queries that have a positive: without ties their sizes differ by at
    most one. Queries of equal uncertainty always share the bin of their average rank, so that
    the figure does not depend on their order, and a constant uncertainty fills one bin.

    Args:
        similarity, relevance: as of `rank_queries`.
        uncertainty: `(queries,)`, higher is less sure, for instance `zoo.embeddings.uncertainty`.
        k: the K of Recall@K.
        bins: number of bins.

    Returns:
        A dict of `(bins,)` arrays from certain to uncertain: `recall`, a fraction (NaN in an empty
        bin), `uncertainty`, the bin's mean (likewise), and `count`, its queries.

    Raises:
        ValueError: if shapes differ, a number is NaN, or no query has a positive.
    Reference: PCME (Chun et al., CVPR 2021) figure 6.
    """
    return recall_in_bins(rank_queries(similarity, relevance), uncertainty, k, bins)


def recall_in_bins(
    ranks: QueryRanks, uncertainty: ArrayLike, k: int = 1, bins: int = 10
) -> dict[str, np.ndarray]:
    """`recall_by_uncertainty` of queries that are ranked already (`rank_queries`)."""
    if bins != int(bins) or bins < 1:
        raise ValueError(f"`bins` must be a whole number of at least 1; received {bins}")
    uncertainty = checks.vector(uncertainty, "uncertainty", len(ranks.num_positives))
    hits = ranks.hits(k)
    ranks.mean(hits)  # raises where no query has a positive
    hits, uncertainty = hits[ranks.has_positive], uncertainty[ranks.has_positive]
    position = (rankdata(uncertainty, method="average") - 0.5) / len(uncertainty)
    bin_of = np.minimum((position * bins).astype(int), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    with np.errstate(invalid="ignore"):  # an empty bin has no recall: NaN
        recall = np.bincount(bin_of, hits, minlength=bins) / count
        mean = np.bincount(bin_of, uncertainty, minlength=bins) / count
    return {"recall": recall, "uncertainty": mean, "count": count}


def spearman_of_bins(recall: ArrayLike) -> float:
    """Spearman's ρ of a bin's place and its recall `(bins,)` of `recall_in_bins`: −1 where recall
    falls from bin to bin; NaN where there are not two bins, as with a constant uncertainty.

    ```python
    spearman_of_bins([0.9, 0.5, np.nan, 0.1])  # -1.0
    ```
    """
    recall = np.asarray(recall)
    recall = recall[np.isfinite(recall)]
    return spearman(np.arange(len(recall)), recall) if len(recall) > 1 else float("nan")


def risk_coverage(uncertainty: ArrayLike, error: ArrayLike) -> dict[str, Any]:
    """The mean error of the most certain share of the queries, for every share.

    ```python
    risk_coverage([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])["risk"]  # [0, 0, 0.33, 0.5]
    ```

    Args:
        uncertainty: `(queries,)`, higher is less sure.
        error: `(queries,)`, for instance `~rank_queries(…).hits(1)`; leave out queries without a
            positive.

    Returns:
        A dict: `coverage` `(queries,)` = 1/n … 1, `risk` `(queries,)` the mean error of that share,
        `aurc` the mean of `risk`; `oracle_aurc`, when queries are dropped by their error;
        `random_aurc`, expected when they are dropped at random, which is the mean error. Queries
        of equal uncertainty enter in random order: the expectation over it is taken exactly.

    Raises:
        ValueError: if lengths differ, or a number is not finite.
    Reference: Geifman and El-Yaniv, "Selective classification for deep neural networks", 2017.
    """
    error = checks.vector(error, "error")
    uncertainty = checks.vector(uncertainty, "uncertainty", len(error))
    _, group, size = np.unique(uncertainty, return_inverse=True, return_counts=True)
    expected = (np.bincount(group, error) / size)[group][np.argsort(group, kind="stable")]
    risk = _running_mean(expected)
    return {
        "coverage": np.arange(1, len(error) + 1) / len(error),
        "risk": risk,
        "aurc": float(risk.mean()),
        "oracle_aurc": float(_running_mean(np.sort(error)).mean()),
        "random_aurc": float(error.mean()),
    }


def normalised_aurc(uncertainty: ArrayLike, error: ArrayLike) -> float:
    """How much of the oracle's gain rejection by uncertainty has: 0 as at random, 1 as the oracle,
    below 0 where it rejects the wrong queries.

    (random AURC − AURC) / (random AURC − oracle AURC), with the areas of `risk_coverage`, whose
    arguments and errors it has; NaN where all queries have one error.

    ```python
    normalised_aurc([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])  # 1.0
    ```

    Relations: kin to the prediction rejection ratio, whose curve counts rejected queries as right.
    """
    curve = risk_coverage(uncertainty, error)
    possible = curve["random_aurc"] - curve["oracle_aurc"]
    return (curve["random_aurc"] - curve["aurc"]) / possible if possible else float("nan")


class Verdict(NamedTuple):
    """Whether an uncertainty tells right from wrong answers, of `uncertainty_verdict`.

    ```python
    uncertainty = np.random.default_rng(0).uniform(size=200)
    zoo.metrics.uncertainty_verdict(uncertainty, uncertainty > 0.7).sentence
    ```

    Attributes:
        kind: `"informative"`, `"weak"`, `"not informative"`, `"misleading"` or `"undefined"`.
        gain: the `Estimate` of `normalised_aurc`.
    """

    kind: str
    gain: Estimate

    @property
    def sentence(self) -> str:
        """The verdict in words, with its number."""
        if self.kind == "undefined":
            return f"{_VERDICTS[self.kind]}."
        gain = self.gain.scaled(100).text(".0f")
        return f"{_VERDICTS[self.kind]} ({gain} % of the oracle's gain)."


INFORMATIVE = 0.3  # of the oracle's gain; the one threshold of reports, commands and docs
_ROUNDING = 1e-9  # of the areas of a constant uncertainty
_VERDICTS = {
    "informative": (
        "This uncertainty is informative: rejecting uncertain queries leaves fewer errors"
    ),
    "weak": "This uncertainty is weak: rejecting uncertain queries leaves somewhat fewer errors",
    "not informative": (
        "This uncertainty is not informative: rejecting uncertain queries is no better than "
        "rejecting any"
    ),
    "misleading": "This uncertainty is misleading: rejecting uncertain queries leaves more errors",
    "undefined": "Nothing can be said of this uncertainty: all queries are right, or all are wrong",
}


def uncertainty_verdict(
    uncertainty: ArrayLike,
    error: ArrayLike,
    least: float = INFORMATIVE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Verdict:
    """Judges by `normalised_aurc` and its 95 % bootstrap interval.

    ```python
    rng = np.random.default_rng(0)
    uncertainty_verdict(rng.random(200), rng.random(200) < 0.5).kind  # "not informative"
    ```

    Args:
        uncertainty, error: as of `risk_coverage`, as are errors.
        least: the gain that an informative uncertainty surely has, as a share of the oracle's.
        resamples, seed: of the bootstrap.

    Returns:
        A `Verdict`: `"not informative"` where the interval includes 0, `"misleading"` where it
        lies below 0, `"weak"` where it lies above 0, `"informative"` where all of it is at least
        `least`, `"undefined"` where all queries have one error.
    """
    uncertainty, error = checks.vector(uncertainty, "uncertainty"), checks.vector(error, "error")
    gain = bootstrap(normalised_aurc, uncertainty, error, resamples=resamples, seed=seed)
    return Verdict(kind_of_gain(gain, least), gain)


def kind_of_gain(gain: Estimate, least: float = INFORMATIVE) -> str:
    """The `kind` of a `Verdict`, of the `Estimate` of a gain, of `normalised_aurc` or of nAUC: 0 at
    random, 1 of an oracle; `least` as of `uncertainty_verdict`."""
    if not np.isfinite(gain.value):
        return "undefined"
    if gain.low <= _ROUNDING and gain.high >= -_ROUNDING:
        return "not informative"
    if gain.value < 0:
        return "misleading"
    return "informative" if gain.low >= least else "weak"


def _running_mean(values):
    """The mean of the first 1, 2, … values, the same shape."""
    return np.cumsum(values) / np.arange(1, len(values) + 1)
