"""Exact L2 search at the speed of the matrix product, and with the precision of differences."""

import threading

import faiss
import numpy as np

from zoo.search import kinds

SPARE = 8
_FEW = 1  # queries up to which the product is taken here: from two on FAISS is faster
_RUN = 64  # items of which only the nearest is looked at first
_EPSILON = float(np.finfo(np.float32).eps)
_norms_lock = threading.Lock()
_BLOCK_ROWS = 2**22  # labels of one direct scan, 32 MiB


def search_l2(index, queries, k):
    """The k nearest of a flat L2 index, their distances correct to float32's relative precision.

    FAISS takes ‖a‖² + ‖b‖² − 2ab, whose rounding error is relative to the lengths and not to the
    distance, so that near duplicates come in any order. Here some spare neighbours are found that
    way, their distances are computed again from differences, and a query is scanned directly when
    an item that was left out could have belonged to the first k.

    Args:
        index: a `faiss.IndexFlat` with `METRIC_L2`.
        queries: float32 `(queries, dim)`, contiguous.
        k: how many, at most `index.ntotal`.

    Returns:
        `(squared distances, rows)`, both `(queries, k)`, nearest first.
    """
    wanted = min(k + SPARE, index.ntotal)
    few = (
        isinstance(index, faiss.IndexFlatL2)
        and len(queries) <= _FEW
        and (wanted + 1) * _RUN < index.ntotal
    )
    found, rows = _expanded(index, queries, wanted) if few else index.search(queries, wanted)
    squared = distances_to(index, queries, rows)
    squared, rows = _nearest(squared, rows, k)
    if wanted < index.ntotal:
        unsure = _unsure(queries, squared[:, -1], found[:, -1])
        for query in np.flatnonzero(unsure):
            squared[query], rows[query] = _scan(index, queries[query : query + 1], k)
    return squared, rows


def _expanded(index, queries, k):
    """What `index.search` gives, from stored norms of the items.

    FAISS computes the norms of the whole gallery in every search, which for one query takes
    longer than the product.
    """
    with _norms_lock:  # FAISS makes room first and fills it then
        if index.cached_l2norms.size() != index.ntotal:
            index.clear_l2norms()
            index.sync_l2norms()
    norms = faiss.rev_swig_ptr(index.cached_l2norms.data(), index.ntotal)
    items = kinds.flat_vectors(index)
    values = (-2.0 * queries) @ items.T
    for row in values:  # one after the other, so that each stays in the processor's cache
        row += norms
    # The k nearest are in the k runs whose nearest are nearest, so few items have to be sorted.
    whole = index.ntotal // _RUN * _RUN
    runs = values[:, :whole].reshape(len(queries), -1, _RUN).min(axis=2)
    runs = np.argpartition(runs, k - 1, axis=1)[:, :k]
    rest = np.arange(whole, index.ntotal)
    rows = (runs[:, :, None] * _RUN + np.arange(_RUN)).reshape(len(queries), -1)
    rows = np.hstack([rows, np.broadcast_to(rest, (len(queries), len(rest)))])
    found, rows = _nearest(np.take_along_axis(values, rows, axis=1), rows, k)
    return found + np.einsum("qd,qd->q", queries, queries)[:, None], rows


def distances_to(index, queries, rows):
    """Squared distances `(queries, k)` to given rows, from differences."""
    rows = np.ascontiguousarray(rows, np.int64)
    squared = np.empty(rows.shape, np.float32)
    index.compute_distance_subset(
        len(queries),
        faiss.swig_ptr(queries),
        rows.shape[1],
        faiss.swig_ptr(squared),
        faiss.swig_ptr(rows),
    )
    return squared


def _unsure(queries, last, outside):
    """Whether rounding can have kept out an item nearer than the last one that is returned.

    Such an item would be at most √last away, so at most that much longer than the query, which
    bounds the error of its expanded distance.
    """
    norm = np.sqrt(np.einsum("qd,qd->q", queries, queries))
    longest = norm + np.sqrt(last)
    rounding = (8.0 + np.sqrt(queries.shape[1])) * _EPSILON * (norm**2 + longest**2)
    return last > outside - rounding


def _scan(index, query, k):
    """Every row, from differences."""
    best, best_rows = None, None
    for start in range(0, index.ntotal, _BLOCK_ROWS):
        rows = np.arange(start, min(start + _BLOCK_ROWS, index.ntotal))[None]
        squared = distances_to(index, query, rows)
        if best is not None:
            squared, rows = np.hstack([best, squared]), np.hstack([best_rows, rows])
        best, best_rows = _nearest(squared, rows, min(k, rows.shape[1]))
    return best[0], best_rows[0]


def _nearest(squared, rows, k):
    if k < squared.shape[1]:
        part = np.argpartition(squared, k - 1, axis=1)[:, :k]
        squared = np.take_along_axis(squared, part, axis=1)
        rows = np.take_along_axis(rows, part, axis=1)
    order = np.lexsort((rows, squared), axis=1)
    return np.take_along_axis(squared, order, axis=1), np.take_along_axis(rows, order, axis=1)
