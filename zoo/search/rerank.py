"""Exact ranking of candidates by the similarity itself."""

import numpy as np

from zoo.embeddings.arrays import take

_BLOCK_ROWS = 16


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
        scores[number] = np.ravel(similarity(*pair))
    scores[filled < 0] = np.nan
    return scores[:, : rows.shape[1]]


def by_query(queries, rows):
    """What was found for each element, `(elements, k)`, beside each other for each query:
    `(queries, num_elements * k)`, −1 for masked elements."""
    items, num_elements, _ = queries["elements"].shape
    if "mask" in queries:
        found = np.full((items * num_elements, rows.shape[1]), -1, rows.dtype)
        found[queries["mask"].reshape(-1)] = rows
        rows = found
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
