"""How hard an approximate index has to look, chosen from the data."""

import time
from typing import Any

import numpy as np

from zoo.embeddings import EmbeddingLike
from zoo.search import kinds
from zoo.search.neighbours import first


def tune(
    index: Any, queries: EmbeddingLike, k: int = 10, recall: float = 0.99, most: int = 16384
) -> list[dict[str, Any]]:
    """Raises the effort of an approximate index until it reaches a recall, and sets it.

    How much effort that takes depends on the data: galleries whose uncertainties vary much need a
    far larger one than their means alone. So it is measured: doubled from k until the recall is
    reached, then halved back in between.

    Args:
        index: an `Index` of kind `"hnsw"` or `"ivfpq"`.
        queries: a sample of real queries, some hundreds.
        k: how many neighbours are to be right.
        recall: share of the k nearest that is to be found, in (0, 1]. The truth is the exact search
            in the index's own vectors; of IVF-PQ, which keeps codes only, the search of all lists.
        most: the largest effort to try.

    Returns:
        A list of dicts `effort`, `recall`, `queries_per_second`, in the order tried; the index is
        left with the least effort tried that reached the recall, or with the best of them.

    Raises:
        ValueError: if the index is flat, or an argument is out of range.
    """
    kind = index.description["kind"]
    if kind == "flat":
        raise ValueError("`index` must be approximate; kind 'flat' is exact and needs no tuning")
    if not 0 < recall <= 1:
        raise ValueError(f"`recall` must be in (0, 1]; received {recall}")
    with index.writing():
        return _tune(index, kind, queries, k, recall, most)


def _tune(index, kind, queries, k, recall, most):
    vectors, rows = index.query_vectors(queries), kinds.rows(index.faiss)
    truth = _truth(kind, rows, vectors, k, index._longest())
    most = most if kind == "hnsw" else min(most, kinds.parts(kind, rows).nlist)
    tried = {}

    def reached(effort):
        if effort not in tried:
            index.effort = effort
            start = time.perf_counter()
            found = rows.search(vectors, k)[1]
            seconds = time.perf_counter() - start
            tried[effort] = {
                "effort": effort,
                "recall": recall_of(found, truth),
                "queries_per_second": len(vectors) / seconds,
            }
        return tried[effort]["recall"] >= recall

    effort = min(k, most)
    while not reached(effort) and effort < most:
        effort = min(2 * effort, most)
    low = effort // 2
    while reached(effort) and effort - low > max(1, effort // 8):
        middle = (low + effort) // 2
        low, effort = (low, middle) if reached(middle) else (middle, effort)
    good = [row for row in tried.values() if row["recall"] >= recall]
    index.effort = (
        min(good, key=lambda row: row["effort"])["effort"]
        if good
        else max(tried.values(), key=lambda row: row["recall"])["effort"]
    )
    return list(tried.values())


def recall_of(found, truth):
    """Mean share of each row of `truth` that is in the same row of `found`."""
    hits = [np.isin(true, got).mean() for true, got in zip(truth, found, strict=True)]
    return float(np.mean(hits))


def _truth(kind, index, vectors, k, longest):
    if kind == "hnsw":
        flat = kinds.flat_part(kind, index)
        score_of, ascending = lambda values, chosen: values, flat.metric_type == kinds.METRICS["l2"]
        rows = np.arange(flat.ntotal)
        return first("flat", flat, vectors, k, rows, score_of, ascending, longest)[1]
    part = kinds.parts(kind, index)
    before, part.nprobe = part.nprobe, part.nlist
    try:
        return index.search(vectors, k)[1]
    finally:
        part.nprobe = before
