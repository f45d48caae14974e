"""Recall@K, R-Precision and mAP@R, of similarities and of a random ranking."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from zoo.metrics.blocks import as_similarity
from zoo.metrics.ranks import as_relevance, rank_queries


def recall_at_k(similarity: Any, relevance: Any, k: int) -> float:
    """Share of queries with at least one positive among the first `k` (a hit rate). Raises
    ValueError if shapes differ, a similarity is NaN, or no query has a positive.

    In cross-modal retrieval this is called recall. Elsewhere recall is the share of all positives
    that is found.

    ```python
    recall_at_k([[0.9, 0.1], [0.8, 0.3]], np.eye(2, dtype=bool), k=1)  # 0.5
    ```

    Args:
        similarity, relevance: as of `rank_queries`.
        k: the number of first items, at least 1.

    Returns:
        A fraction in [0, 1]: the mean over queries with a positive. Ties count against the model.
    """
    ranks = rank_queries(similarity, relevance)
    return ranks.mean(ranks.hits(k))


def r_precision(similarity: Any, relevance: Any) -> float:
    """Share of positives among the first R, R the number of positives of the query.

    ```python
    r_precision([[0.9, 0.8, 0.1]], [[True, False, True]])  # 0.5
    ```

    Args, Returns and Raises: as `recall_at_k`.
    Relations: equals `recall_at_k(…, k=1)` where every query has one positive.
    """
    ranks = rank_queries(similarity, relevance)
    return ranks.mean(ranks.r_precision)


def mean_average_precision_at_r(similarity: Any, relevance: Any) -> float:
    """mAP@R: (1/R) Σ_{i ≤ R} precision@i · [item i is a positive], R the number of positives.

    ```python
    mean_average_precision_at_r([[0.9, 0.8, 0.1]], [[False, True, True]])  # 0.25
    ```

    Args, Returns and Raises: as `recall_at_k`.
    Relations: at most `r_precision`, and equal to it only where the positives found lead the list.
    Reference: Musgrave et al., "A metric learning reality check", ECCV 2020.
    """
    ranks = rank_queries(similarity, relevance)
    return ranks.mean(ranks.average_precision_at_r)


def evaluate_retrieval(
    similarity: Any, relevance: Any, ks: Sequence[int] = (1, 5, 10)
) -> dict[str, float]:
    """Both directions of image–text retrieval, in percent. Raises ValueError if shapes differ, a
    similarity is NaN, or no query has a positive.

    ```python
    evaluate_retrieval(np.eye(3), np.eye(3, dtype=bool), ks=(1,))["rsum"]  # 200.0
    ```

    Args:
        similarity, relevance: as of `rank_queries`, images × captions.
        ks: the K of Recall@K.

    Returns:
        A dict: `i2t_recall@K`, `i2t_r_precision`, `i2t_map@r` and the same for `t2i_`, in
        percent; `rsum`, the sum of all recalls; and as whole numbers `i2t_queries` and
        `i2t_queries_without_positive`, which are left out of the means.
    """
    similarity = as_similarity(similarity)
    relevance = as_relevance(relevance, similarity.shape)
    results = {}
    for direction, scores, truth in (
        ("i2t", similarity, relevance),
        ("t2i", similarity.transposed(), relevance.transposed()),
    ):
        ranks = rank_queries(scores, truth)
        results |= {f"{direction}_{key}": value for key, value in summarise(ranks, ks).items()}
    results["rsum"] = rsum(results)
    return results


def summarise(ranks, ks=(1, 5, 10)):
    """The metrics of one direction, in percent, and the number of queries behind them."""
    results = {f"recall@{k}": 100 * ranks.mean(ranks.hits(k)) for k in ks}
    results["r_precision"] = 100 * ranks.mean(ranks.r_precision)
    results["map@r"] = 100 * ranks.mean(ranks.average_precision_at_r)
    results["queries"] = int(ranks.has_positive.sum())
    results["queries_without_positive"] = int((~ranks.has_positive).sum())
    return results


def rsum(results):
    """RSUM: the sum of every `recall@K` in both directions."""
    return sum(value for key, value in results.items() if "recall@" in key)


def chance(relevance: Any, ks: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """Expected `evaluate_retrieval` of rankings in uniformly random order, but for the counts.

    With R positives among N items: Recall@K is 1 − C(N−R, K) / C(N, K), R-Precision is R / N, and
    mAP@R is (1/R) Σ_{i ≤ R} (R/N) · (1 + (i−1)(R−1)/(N−1)) / i. Raises ValueError if a direction
    has no query with a positive.

    ```python
    chance(np.eye(10, dtype=bool), ks=(1,))["i2t_recall@1"]  # 10.0
    ```
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
            results[f"{direction}_recall@{k}"] = float(
                weight @ hypergeom.sf(0, total, counts, min(k, total))
            )
        results[f"{direction}_r_precision"] = float(weight @ (counts / total))
        precisions = [_average_precision(count, total) for count in counts]
        results[f"{direction}_map@r"] = float(weight @ precisions)
    results["rsum"] = rsum(results)
    return results


def _average_precision(positives, total):
    """The expected average precision of a random ranking."""
    position = np.arange(1, positives + 1)
    others = (positives - 1) / (total - 1) if total > 1 else 0.0
    return float(np.mean(positives / total * (1.0 + (position - 1) * others) / position))
