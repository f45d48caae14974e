"""Flat search at the speed of the matrix product, and with the precision of single pairs."""

import contextlib
import os

import faiss
import numpy as np

from zoo.embeddings.arrays import products
from zoo.search import flat

# For the process: FAISS computes small batches pair by pair, at 15–41 % of the speed of the matrix
# product that it uses for larger ones; its memory per query is bounded, so one query may use it.
# And with 1,024 items of one product, its own number, BLAS is up to a fifth slower from 64 queries.
faiss.cvar.distance_compute_blas_threshold = 1
faiss.cvar.distance_compute_blas_database_bs = 2048
# Products of numbers up to which a search runs on the calling thread: it takes some 4 ms there at
# most. OpenMP's threads spin while they wait for each other, which costs a server of single
# questions ten times the search's own CPU time, and on a busy machine as much of the wall clock.
_SMALL = 2**23
# OpenMP's other threads are not in a process that was forked, which would wait for them for ever.
os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))


@contextlib.contextmanager
def one_thread_if_small(index, count):
    """Keeps FAISS to the calling thread where a search of so many queries is small; OpenMP counts
    the threads of each calling thread apart."""
    before = faiss.omp_get_max_threads()
    if before == 1 or count * index.ntotal * index.d > _SMALL:
        yield
        return
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


_FEW = 1  # queries up to which the product is taken here: from two on FAISS is faster
_RUN = 64  # items of which only the nearest is looked at first
_EPSILON = float(np.finfo(np.float32).eps)
_BLOCK_ROWS = 2**22  # labels of one direct scan, 32 MiB


def candidates(index, queries, count, longest=None, mask=None):
    """The first rows of a flat index for every query, their values those of single pairs.

    FAISS takes products of matrices. Their rounding depends on a row's place, so that copies of one
    item get different values; and the L2 distance is ‖a‖² + ‖b‖² − 2ab, whose error is relative to
    the lengths and not to the distance. So some rows are found that way, and their values are
    computed again, pair by pair.

    Returns `(values, rows, bound)`: `(queries, count)` in about the order of the values, NaN and −1
    where there are no more; and `(queries,)`, the best value that a row which was not found may
    have, NaN where there is none. `longest` is the length of the longest item, for inner products;
    `mask` `(rows,)` says which rows may be found.
    """
    is_l2 = index.metric_type == faiss.METRIC_L2
    few = (
        mask is None
        and isinstance(index, faiss.IndexFlatL2)
        and len(queries) <= _FEW
        and (count + 1) * _RUN < index.ntotal
    )
    if few:
        found, rows = _expanded(index, queries, count)
    else:
        parameters, _kept = flat.search_parameters(mask)
        found, rows = index.search(queries, count, params=parameters)
    values = values_of(index, queries, rows)
    values[rows < 0] = np.nan
    there = index.ntotal if mask is None else np.count_nonzero(mask)
    if count >= there:
        return values, rows, np.full(len(queries), np.nan, np.float32)
    # An item beyond the last one found is at most that much better than FAISS' value says.
    norm = np.sqrt(np.einsum("qd,qd->q", queries, queries))
    if is_l2:
        # It would be at most √last away, and so at most that much longer than the query.
        furthest = norm + np.sqrt(np.nanmax(values, axis=1, initial=0.0))
        size = norm**2 + furthest**2
    else:
        size = norm * longest
    rounding = (8.0 + np.sqrt(queries.shape[1])) * _EPSILON * size
    bound = found[:, -1] - rounding if is_l2 else found[:, -1] + rounding
    return values, rows, bound.astype(np.float32)


def all_values(index, query, rows):
    """The values of one query, `(1, dim)`, and many rows, `(rows,)`, pair by pair."""
    parts = [
        values_of(index, query, rows[None, start : start + _BLOCK_ROWS])[0]
        for start in range(0, len(rows), _BLOCK_ROWS)
    ]
    return np.concatenate(parts)


def values_of(index, queries, rows):
    """FAISS' values `(queries, k)` of given rows, squared distances from differences."""
    rows = np.ascontiguousarray(rows, np.int64)
    values = np.empty(rows.shape, np.float32)
    index.compute_distance_subset(
        len(queries),
        faiss.swig_ptr(queries),
        rows.shape[1],
        faiss.swig_ptr(values),
        faiss.swig_ptr(rows),
    )
    return values


def _expanded(index, queries, k):
    """What `index.search` gives, from stored norms of the items: FAISS computes them in every
    search, which for one query takes longer than the product."""
    if index.cached_l2norms.size() != index.ntotal:
        index.clear_l2norms()
        index.sync_l2norms()
    norms = faiss.rev_swig_ptr(index.cached_l2norms.data(), index.ntotal)
    items = flat.vectors(index)
    values = products(-2.0 * queries, items)
    for row in values:  # one after the other, so that each stays in the processor's cache
        row += norms
    # The k nearest are in the k runs whose nearest are nearest, so few items have to be sorted.
    whole = index.ntotal // _RUN * _RUN
    runs = values[:, :whole].reshape(len(queries), -1, _RUN).min(axis=2)
    runs = np.argpartition(runs, k - 1, axis=1)[:, :k]
    rest = np.arange(whole, index.ntotal)
    rows = (runs[:, :, None] * _RUN + np.arange(_RUN)).reshape(len(queries), -1)
    rows = np.hstack([rows, np.broadcast_to(rest, (len(queries), len(rest)))])
    values = np.take_along_axis(values, rows, axis=1)
    part = np.argpartition(values, k - 1, axis=1)[:, :k]
    part = np.take_along_axis(part, np.argsort(np.take_along_axis(values, part, 1), axis=1), 1)
    found, rows = np.take_along_axis(values, part, 1), np.take_along_axis(rows, part, 1)
    return found + np.einsum("qd,qd->q", queries, queries)[:, None], rows
