"""The first items of every query by score, then by id, whatever finds them and however many."""

import numpy as np

from zoo.search import exact, kinds
from zoo.search.exact import matrix_products, one_thread_if_small
from zoo.search.rerank import best

SPARE = 8
FEW = 0.02  # share of the rows below which a graph is scanned: its edges mostly lead astray
# Pairs of which each is computed at once. To find candidates first takes longer up to about these:
# one query of 170, 700 and 2,000 rows 4, 4 and 2 times as long, 16 queries of 170 rows 1.5 times.
_PAIRS = 2**11


def first(kind, index, queries, k, ids, score_of, ascending, longest=None, mask=None, effort=None):
    """The first k rows of every query by score, then by id.

    FAISS orders by its own values and keeps any of those that are equal. So some more rows are
    found, and a query is looked at again as long as a row that was left out may score as well as
    its last one. The first k are then the beginning of the first K, of a flat index always, of
    others as far as they find the same rows.

    Args:
        kind: of `zoo.search.kinds.KINDS`.
        index: the FAISS index, of rows; see `kinds.rows`.
        queries: float32 `(queries, dim)`.
        k: how many, at most `index.ntotal`.
        ids: `(rows,)` of the items.
        score_of: function of FAISS' values `(some, n)` and of which queries they are, a slice or
            their numbers, to scores.
        ascending: whether the least score is the best.
        longest: as of `exact.candidates`.
        mask: `(rows,)` boolean, the rows that may be found; None for all.
        effort: that of an approximate index, see `kinds.get_effort`.

    Returns:
        `(scores, rows)`, both `(queries, k)`, the best first; NaN and −1 where there are no more.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    if mask is not None and not mask.any():
        return np.full((len(queries), k), np.nan, np.float32), np.full((len(queries), k), -1)
    if kind == "hnsw" and mask is not None and np.count_nonzero(mask) < FEW * len(mask):
        kind, index = "flat", kinds.flat_part(kind, index)
    more = k, ids, score_of, ascending, longest, mask, effort
    with one_thread_if_small(index, len(queries)):
        return _first(kind, index, queries, *more)


def _first(kind, index, queries, k, ids, score_of, ascending, longest, mask, effort):
    total, every = len(ids), slice(None)
    if kind == "flat":
        allowed = np.arange(total) if mask is None else np.flatnonzero(mask)
        if len(queries) * total <= _PAIRS:
            rows = np.broadcast_to(allowed, (len(queries), len(allowed)))
            values = exact.values_of(index, queries, rows)
            return best(score_of(values, every), rows, k, ascending, ids)
    # All that a graph's search holds at its end, so that it is the same for every smaller k.
    count = min(total, max(k + SPARE, effort) if kind == "hnsw" else k + SPARE)
    values, rows, bound = _found(kind, index, queries, count, longest, mask, effort)
    scores, rows = best(score_of(values, every), rows, k, ascending, ids)
    unsure = _unsure(scores, score_of(bound[:, None], every)[:, 0], ascending)
    if kind == "flat":
        for query in unsure:
            found = exact.all_values(index, queries[query : query + 1], allowed)
            own = score_of(found[None], [query])
            scores[query], rows[query] = best(own, allowed[None], k, ascending, ids)
        return scores, rows
    while len(unsure) and count < total:
        count = min(4 * count, total)
        values, more, bound = _found(kind, index, queries[unsure], count, longest, mask, effort)
        own, more = best(score_of(values, unsure), more, k, ascending, ids)
        scores[unsure], rows[unsure] = own, more
        unsure = unsure[_unsure(own, score_of(bound[:, None], unsure)[:, 0], ascending)]
    return scores, rows


def _found(kind, index, queries, count, longest, mask, effort):
    """`exact.candidates`, of any kind of index: an approximate one's values are its own."""
    if kind == "flat":
        with matrix_products():
            return exact.candidates(index, queries, count, longest, mask)
    parameters, _kept = kinds.search_parameters(kind, effort, count, mask)
    if kind == "hnsw":
        values, rows = index.search(queries, count, params=parameters)
    else:
        with matrix_products():
            values, rows = index.search(queries, count, params=parameters)
    values[rows < 0] = np.nan
    bound = values[:, -1] if count < index.ntotal else np.full(len(rows), np.nan, np.float32)
    return values, rows, bound


def _unsure(scores, bound, ascending):
    """The queries of which a row that was not found may score as well as the last one."""
    last = scores[:, -1]
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(bound <= last if ascending else bound >= last)
