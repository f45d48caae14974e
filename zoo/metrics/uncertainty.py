"""Does the uncertainty know where the model errs: recall by bin, risk–coverage, Spearman."""

import numpy as np
from scipy.stats import rankdata

from zoo.metrics.ranks import rank_queries


def recall_by_uncertainty(similarity, relevance, uncertainty, k=1, bins=10):
    """Recall@K of the queries in bins of rising uncertainty.

    Bins are quantiles of the queries that have a positive: without ties their sizes differ by at
    most one. Queries of equal uncertainty always share the bin of their average rank, so that
    the figure does not depend on their order; then sizes differ more, and a constant
    uncertainty fills one bin.

    Args:
        similarity: `(queries, gallery)` array or `PairwiseSimilarity`, higher is better.
        relevance: `(queries, gallery)` booleans, dense or scipy sparse, or one of
            `zoo.metrics.relevance`.
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


def recall_in_bins(ranks, uncertainty, k=1, bins=10):
    """`recall_by_uncertainty` of queries that are ranked already (`rank_queries`)."""
    if bins != int(bins) or bins < 1:
        raise ValueError(f"`bins` must be a whole number of at least 1; received {bins}")
    uncertainty = _finite(uncertainty, "uncertainty")
    _same_length(uncertainty, ranks.num_positives, "uncertainty", "the rows of `similarity`")
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


def risk_coverage(uncertainty, error):
    """The mean error of the most certain share of the queries, for every share.

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
    uncertainty, error = _finite(uncertainty, "uncertainty"), _finite(error, "error")
    _same_length(uncertainty, error, "uncertainty", "`error`")
    if not len(error):
        raise ValueError("`error` must hold at least one query; received none")
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


def spearman(first, second):
    """Spearman's rank correlation, ties at their average rank.

    Args:
        first: `(n,)` numbers, for instance the uncertainty.
        second: `(n,)` numbers, for instance the error or the true number of matches.

    Returns:
        A float in [−1, 1]; NaN where either is constant, since nothing then co-varies.

    Raises:
        ValueError: if lengths differ, there are fewer than two, or a number is not finite.
    """
    first, second = _finite(first, "first"), _finite(second, "second")
    _same_length(first, second, "first", "`second`")
    if len(first) < 2:
        raise ValueError(f"`first` must hold at least two numbers; received {len(first)}")
    first, second = (rankdata(x) - (len(x) + 1) / 2 for x in (first, second))
    scale = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / scale) if scale else float("nan")


def _running_mean(values):
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def _finite(values, name):
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"`{name}` must be one number a query; received shape {values.shape}")
    if not np.isfinite(values).all():
        position = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"`{name}` must be finite; received {values[position]} at position {position}"
        )
    return values


def _same_length(values, others, name, other_name):
    if len(values) != len(others):
        raise ValueError(
            f"`{name}` must be as long as {other_name}, {len(others)}; received {len(values)}"
        )
