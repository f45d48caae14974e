"""FAISS' flat index, searched at the product's speed with the precision of single pairs; and the
ranking of candidates by the similarity itself."""

import contextlib
import os

import faiss
import numpy as np

from halo_search.embeddings.arrays import products, take
from halo_search.index import scoring

# For the process: FAISS computes small batches pair by pair, at 15–41 % of the speed of the matrix
# product that it uses for larger ones; its memory per query is bounded, so one query may use it.
# And with 1,024 items of one product, its own number, BLAS is up to a fifth slower from 64 queries.
faiss.cvar.distance_compute_blas_threshold = 1
faiss.cvar.distance_compute_blas_database_bs = 2048
# OpenMP's other threads are not in a process that was forked, which would wait for them for ever.
os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))

NONE = -1  # how FAISS says that there is no row
SPARE = 8  # candidates beyond those that are asked for
# Products of numbers up to which a search runs on the calling thread: it takes some 4 ms there at
# most. OpenMP's threads spin while they wait for each other, which costs a server of single
# questions ten times the search's own CPU time, and on a busy machine as much of the wall clock.
_SMALL = 2**23
_RUN = 64  # items of which only the nearest is looked at first
_EPSILON = float(np.finfo(np.float32).eps)
_PAIRS = 2**22  # numbers of pairs of vectors at once
_BLOCK_ROWS = 16


def create(metric, dim):
    """An empty `faiss.IndexIDMap` over a flat index; `metric` as of `SearchSpace`."""
    return faiss.IndexIDMap((faiss.IndexFlatL2 if metric == "l2" else faiss.IndexFlatIP)(dim))


def flat_of(index):
    """The flat index below the ids, with its own type; it knows rows."""
    return faiss.downcast_index(index.index)


def row_ids(index):
    """The id of every row, int64, FAISS' own memory; ask again when rows have changed."""
    if not index.ntotal:
        return np.empty(0, np.int64)
    return faiss.rev_swig_ptr(index.id_map.data(), index.ntotal)


def vectors(flat):
    """The vectors, float32 `(rows, dim)`: FAISS' own memory, while it has rows."""
    if not flat.ntotal:
        return np.empty((0, flat.d), np.float32)
    return faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(-1, flat.d)


def reserve(flat, count):
    """Makes room for further rows at once, so that adding in chunks never copies the index."""
    # Growing and shrinking again keeps the capacity; the bindings have no `reserve`.
    used = flat.codes.size()
    flat.codes.resize(used + count * flat.code_size)
    flat.codes.resize(used)


def remove(index, ids):
    """Removes the rows of some ids; those behind them move up."""
    index.remove_ids(ids)
    flat = flat_of(index)
    if hasattr(flat, "clear_l2norms"):  # of other rows now
        flat.clear_l2norms()


@np.errstate(over="ignore", invalid="ignore")  # distances that overflow are infinite, and ties
def first(index, queries, k, ids, score_of, ascending, longest=None):
    """The first k by score, then by id: `(scores, rows)` `(queries, k)`, NaN and −1 behind all.

    Products of matrices are fast, and only about right. Their rounding depends on a row's place, so
    that copies of one item get different values; and the L2 distance is ‖a‖² + ‖b‖² − 2ab, whose
    error is relative to the lengths and not to the distance. So some rows are found that way, and
    their values are computed again, pair by pair; and so are those of every other row that may
    score as well, by a bound of the error.

    `index` is flat; `score_of` maps FAISS' values and which queries they are to scores; `longest`
    is the length of the longest item, for inner products.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    count = min(k + SPARE, len(ids))
    if not count:
        return np.full((len(queries), k), np.nan, np.float32), np.full((len(queries), k), NONE)
    every, approximate = slice(None), None
    if len(queries) == 1:
        approximate = _product_values(index, queries)
        nearest, rows = _nearest(index, approximate, count)
    else:
        with _one_thread_if_small(queries.size * index.ntotal):
            nearest, rows = index.search(queries, count)
    values = values_of(index, queries, rows)
    values[rows < 0] = np.nan
    scores, rows = best(score_of(values, every), rows, k, ascending, ids)
    if count == len(ids):
        return scores, rows
    bound = score_of(_bound(index, queries, values, nearest[:, -1], longest), every)[:, 0]
    last = scores[:, -1]
    # Of what is not a number nothing is proven.
    for query in np.flatnonzero(~(bound > last if ascending else bound < last)):
        asked = queries[query : query + 1]
        likely = _product_values(index, asked) if approximate is None else approximate
        most = score_of(_optimistic(index, asked, likely, longest), [query])[0]
        behind = most > last[query] if ascending else most < last[query]
        contenders = np.flatnonzero(~behind)[None]
        exact = score_of(values_of(index, asked, contenders), [query])
        scores[query], rows[query] = best(exact, contenders, k, ascending, ids)
    return scores, rows


@contextlib.contextmanager
def _one_thread_if_small(products):
    """Runs a search of few products on the calling thread alone."""
    before = faiss.omp_get_max_threads()  # OpenMP counts the threads of each calling thread apart
    if products <= _SMALL:
        faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def values_of(index, queries, rows):
    """FAISS' values `(queries, k)` of given rows, squared distances from differences."""
    rows = np.ascontiguousarray(rows, np.int64)
    values = np.empty(rows.shape, np.float32)
    asked, results, wanted = map(faiss.swig_ptr, (queries, values, rows))
    with _one_thread_if_small(rows.size * index.d):
        index.compute_distance_subset(len(queries), asked, rows.shape[1], results, wanted)
    return values


def pair_values(metric, queries, items, rows):
    """What FAISS' value is of each query and some items, `(Q, n)`, by rows of these."""
    values = np.empty(rows.shape)
    step = max(1, _PAIRS // max(1, rows.shape[1] * items.shape[1]))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        theirs = items[np.maximum(rows[part], 0)]
        if metric == "l2":
            values[part] = np.square(theirs - queries[part, None]).sum(axis=2)
        else:
            values[part] = np.einsum("qnd,qd->qn", theirs, queries[part])
    return values


def _product_values(index, query):
    """About FAISS' values of all rows, `(1, rows)`, for one query.

    FAISS multiplies matrices also for one query, which copies the items into blocks for BLAS, and
    takes twice the time of the product with a vector. Its L2 search computes the items' norms in
    every search besides. From two queries on FAISS is faster.
    """
    if index.metric_type != faiss.METRIC_L2:
        return products(query, vectors(index))
    values = products(-2.0 * query, vectors(index))
    values += _norms(index)
    values += np.square(query).sum()
    return values


def _norms(index):
    """The squared lengths of all rows, which FAISS keeps: its own memory."""
    if index.cached_l2norms.size() != index.ntotal:
        index.clear_l2norms()
        index.sync_l2norms()
    return faiss.rev_swig_ptr(index.cached_l2norms.data(), index.ntotal)


def _nearest(index, values, k):
    """The k nearest rows by `values` `(1, rows)`, as of `index.search`, the last last."""
    keys = values[0] if index.metric_type == faiss.METRIC_L2 else -values[0]
    in_runs = len(keys) // _RUN * _RUN
    if (k + 1) * _RUN < len(keys):
        # The k nearest are in the k runs whose nearest are nearest, so few have to be sorted.
        runs = np.argpartition(keys[:in_runs].reshape(-1, _RUN).min(axis=1), k - 1)[:k]
        rows = np.append(runs[:, None] * _RUN + np.arange(_RUN), np.arange(in_runs, len(keys)))
    else:
        rows = np.arange(len(keys))
    rows = rows[np.argpartition(keys[rows], k - 1)[:k]]
    return values[:, rows], rows[None]


def _bound(index, queries, values, last, longest):
    """The best value that a row may have that was not found, `(queries, 1)`: FAISS' value of the
    last one that was, `last`, and what that may be wrong by."""
    norm = np.sqrt(np.einsum("qd,qd->q", queries, queries))
    if index.metric_type == faiss.METRIC_L2:
        # It would be at most √last away, and so at most that much longer than the query.
        furthest = norm + np.sqrt(np.nanmax(values, axis=1, initial=0.0))
        bound = last - _rounding(index, norm**2 + furthest**2)
    else:
        bound = last + _rounding(index, norm * longest)
    return bound.astype(np.float32)[:, None]


def _optimistic(index, query, values, longest):
    """The best values that all rows may have, `(1, rows)`, of which `values` are about right."""
    norm = np.sqrt(np.einsum("qd,qd->q", query, query))
    if index.metric_type == faiss.METRIC_L2:
        return values - _rounding(index, norm**2 + _norms(index)).astype(np.float32)
    return values + _rounding(index, norm * longest).astype(np.float32)


def _rounding(index, size):
    """What FAISS' value may be wrong by, for products of that size."""
    return (8.0 + np.sqrt(index.d)) * _EPSILON * size


def rescored(similarity, side, queries, gallery, rows):
    """Scores in the similarity's own units, float32 `(queries, candidates)`, of each query and rows
    of the whole gallery; −1 is none, and scores NaN."""
    # The last rows of a product may be rounded otherwise than the rest, and copies of an item have
    # to score the same: so blocks of rows are whole.
    filled = np.pad(rows, ((0, 0), (0, -rows.shape[1] % _BLOCK_ROWS)), constant_values=-1)
    scores = np.empty(filled.shape, np.float32)
    for number, candidates in enumerate(filled):
        query = take(queries, slice(number, number + 1))
        items = take(gallery, np.maximum(candidates, 0))
        # Most divergences and sampled similarities tell the two sides apart.
        pair = (items, query) if side == "images" else (query, items)
        with np.errstate(over="ignore"):  # of float64
            scores[number] = np.ravel(similarity(*pair))
    scoring.finite(similarity, scores)
    scores[filled < 0] = np.nan
    return scores[:, : rows.shape[1]]


def by_query(queries, rows):
    """What was found for each element, `(elements, k)`, beside each other for each query:
    `(queries, num_elements * k)`, −1 for masked elements."""
    items, num_elements, _ = queries["elements"].shape
    if "mask" in queries:
        filled = np.full((items * num_elements, rows.shape[1]), -1, rows.dtype)
        filled[queries["mask"].reshape(-1)] = rows
        rows = filled
    return rows.reshape(items, -1)


def unique_candidates(rows):
    """Each query's distinct candidates, `(queries, at most as many)`, filled up with −1."""
    ordered = np.sort(rows, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    ordered = -np.sort(-ordered, axis=1)  # real rows first
    return ordered[:, : max(1, int((ordered >= 0).sum(axis=1).max(initial=0)))]


def best(scores, rows, k, ascending, ids=None):
    """The first k of `(queries, candidates)` by score, then by id: `(scores, rows)`. NaN is no
    candidate, and missing ones are NaN and −1. `ids` are of all rows; None where rows are ids."""
    keys = scores if ascending else -scores
    order = np.lexsort((rows if ids is None else ids[rows], keys), axis=1)[:, :k]  # NaN is last
    query = np.arange(len(order))[:, None]
    scores, rows = scores[query, order], rows[query, order]
    if scores.shape[1] < k:
        missing = ((0, 0), (0, k - scores.shape[1]))
        scores = np.pad(scores, missing, constant_values=np.nan)
        rows = np.pad(rows, missing, constant_values=-1)
    return scores, np.where(np.isnan(scores), -1, rows)
