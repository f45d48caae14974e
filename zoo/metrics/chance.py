"""The expected metrics of a random ranking."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from zoo.metrics.relevance import as_relevance


def chance(relevance: Any, ks: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """Expected `evaluate_retrieval` of rankings in uniformly random order.

    With R positives among N items: Recall@K is 1 − C(N−R, K) / C(N, K), R-Precision is R / N, and
    mAP@R is (1/R) Σ_{i ≤ R} (R/N) · (1 + (i−1)(R−1)/(N−1)) / i.

    ```python
    chance(np.eye(10, dtype=bool), ks=(1,))["i2t_recall@1"]  # 10.0
    ```

    Args:
        relevance: `(images, captions)` booleans, dense or scipy sparse, or one of
            `zoo.metrics.relevance`.
        ks: the K of Recall@K.

    Returns:
        A dict with the keys of `evaluate_retrieval` but for the counts, in percent.

    Raises:
        ValueError: if a direction has no query with a positive.
    """
    relevance = as_relevance(relevance)
    results = {}
    for direction, truth in (("i2t", relevance), ("t2i", relevance.transposed())):
        num_queries, total = truth.shape
        positives = [len(truth.positives(query)) for query in range(num_queries)]
        counts, queries = np.unique(positives, return_counts=True)
        counts, queries = counts[counts > 0], queries[counts > 0]
        if not len(counts):
            raise ValueError(f"`relevance` has no positive for any query of {direction}")
        weight = 100.0 * queries / queries.sum()
        for k in ks:
            results[f"{direction}_recall@{k}"] = float(weight @ _hit_rate(counts, total, k))
        results[f"{direction}_r_precision"] = float(weight @ (counts / total))
        precisions = [_average_precision(count, total) for count in counts]
        results[f"{direction}_map@r"] = float(weight @ precisions)
    results["rsum"] = sum(value for key, value in results.items() if "recall@" in key)
    return results


def _hit_rate(positives, total, k):
    k = min(k, total)
    others = total - positives
    possible = others >= k
    log_miss = np.where(
        possible,
        _log_choose(np.where(possible, others, k), k) - _log_choose(total, k),
        -np.inf,
    )
    return -np.expm1(log_miss)


def _log_choose(n, k):
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _average_precision(positives, total):
    position = np.arange(1, positives + 1)
    others = (positives - 1) / (total - 1) if total > 1 else 0.0
    return float(np.mean(positives / total * (1.0 + (position - 1) * others) / position))
