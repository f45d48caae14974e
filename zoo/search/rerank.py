"""Exact ranking of candidates by the similarity itself."""

import functools

import numpy as np

from zoo.embeddings.arrays import take

_BLOCK_ROWS = 16
_BLOCK_BYTES = 2**26  # of gathered candidates: small beside a gallery, large beside the overhead


class Reranker:
    """Scores every query against candidates of its own; `side` as of `Index.build`, since most
    divergences and sampled similarities tell the two apart."""

    def __init__(self, similarity, side):
        self._similarity, self._side = similarity, side

    @functools.cached_property
    def _compiled(self):
        import tensorflow as tf  # here: most indexes rank nothing again

        def scores(queries, gallery):
            return tf.map_fn(self._of_one, (queries, gallery), fn_output_signature=tf.float32)

        return tf.function(scores, reduce_retracing=True)

    def scores(self, queries, gallery, rows):
        """Scores in the similarity's own units, float32 `(queries, candidates)`, of rows of the
        whole gallery; −1 is none, and scores NaN."""
        # The last rows of a product may be rounded otherwise than the rest, and copies of an item
        # have to score the same: so blocks of rows are whole.
        filled = np.pad(rows, ((0, 0), (0, -rows.shape[1] % _BLOCK_ROWS)), constant_values=-1)
        scores = np.empty(rows.shape, np.float32)
        item = sum(value[:1].nbytes for value in gallery.values())
        block = max(1, _BLOCK_BYTES // max(1, item * filled.shape[1]))
        for start in range(0, len(rows), block):
            chosen = slice(start, start + block)
            own = {key: value[chosen] for key, value in queries.items()}
            theirs = take(gallery, np.maximum(filled[chosen], 0))
            scores[chosen] = self._compiled(own, theirs)[:, : rows.shape[1]]
        scores[rows < 0] = np.nan
        return scores

    def _of_one(self, pair):
        query, candidates = pair
        query = {key: value[None] for key, value in query.items()}
        if self._side == "images":
            return self._similarity(candidates, query)[:, 0]
        return self._similarity(query, candidates)[0]


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
