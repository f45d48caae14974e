"""The first items of every query by score, then by id, however many are asked for."""

import numpy as np

from zoo.search import exact
from zoo.search.exact import one_thread_if_small
from zoo.search.rerank import best

SPARE = 8
# Pairs of which each is computed at once. To find candidates first takes longer up to about these:
# one query of 170, 700 and 2,000 rows 4, 4 and 2 times as long, 16 queries of 170 rows 1.5 times.
_PAIRS = 2**11


def first(index, queries, k, ids, score_of, ascending, longest=None, mask=None):
    """`(scores, rows)` `(queries, k)`: the first k by score, then by id; NaN and −1 behind all.
    `score_of` maps FAISS' values and which queries they are; see `exact.candidates`."""
    queries = np.ascontiguousarray(queries, np.float32)
    if mask is not None and not mask.any():
        return np.full((len(queries), k), np.nan, np.float32), np.full((len(queries), k), -1)
    with one_thread_if_small(index, len(queries)):
        return _first(index, queries, k, ids, score_of, ascending, longest, mask)


def _first(index, queries, k, ids, score_of, ascending, longest, mask):
    total, every = len(ids), slice(None)
    allowed = np.arange(total) if mask is None else np.flatnonzero(mask)
    if len(queries) * total <= _PAIRS:
        rows = np.broadcast_to(allowed, (len(queries), len(allowed)))
        values = exact.values_of(index, queries, rows)
        return best(score_of(values, every), rows, k, ascending, ids)
    count = min(total, k + SPARE)
    values, rows, bound = exact.candidates(index, queries, count, longest, mask)
    scores, rows = best(score_of(values, every), rows, k, ascending, ids)
    for query in _unsure(scores, score_of(bound[:, None], every)[:, 0], ascending):
        found = exact.all_values(index, queries[query : query + 1], allowed)
        own = score_of(found[None], [query])
        scores[query], rows[query] = best(own, allowed[None], k, ascending, ids)
    return scores, rows


def _unsure(scores, bound, ascending):
    """The queries of which a row that was not found may score as well as the last one."""
    last = scores[:, -1]
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(bound <= last if ascending else bound >= last)
