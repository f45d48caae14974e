"""Scores of single pairs as if an index held the items, and how many of its items score higher."""

import numpy as np

from zoo.embeddings import SET
from zoo.embeddings.arrays import unit
from zoo.search import gallery_scores, kinds, scoring
from zoo.search.rerank import by_query
from zoo.search.sharing import reads

_PAIRS = 2**22  # numbers of pairs of vectors at once


class PairScores:
    """What `Gallery` says of items that it does not hold; a part of that class."""

    @reads
    def pair_scores(self, queries, items, rows, left_out=None):
        """The scores of queries and single items, `(Q, n)`, higher is better; NaN where none is.

        Items are scored as if the index held them: of IVF-PQ by what their codes stand for. What a
        search would not find, because it is in a list that is not looked at or behind all
        candidates, scores minus infinity. A graph is taken to find what there is.

        Args:
            queries, items: dicts of arrays.
            rows: `(Q, n)`, rows of `items`; −1 is none.
            left_out: of `CorrectedSpace.gallery`, where hubs are corrected.
        """
        sign = scoring.sign(self.similarity)
        if self.has_moments:
            space = self._moment_space
            asked = np.asarray(space.queries(queries), np.float64)
            made = space.gallery(items) if left_out is None else space.gallery(items, left_out)
            own = np.asarray(self._as_stored(made), np.float64)
            values = _pair_values(space.metric, asked, own, rows)
            scores = sign * np.asarray(space.scores(values, queries, self._score), np.float64)
        else:
            scores = sign * self._reranker.scores(queries, items, rows).astype(np.float64)
        found = self._would_find(queries, items, rows)
        if found is not None:
            scores = np.where(found, scores, -np.inf)
        return np.where(rows < 0, np.nan, scores)

    @reads
    def count_at_least(self, queries, scores):
        """How many of all items score at least as high, `(Q,)`, for each query, int64 `(Q,)`."""
        least = np.asarray(scores, np.float64)
        if self.has_moments:
            found = self._stored_vectors()
            more = self._moment_space, self._score, scoring.sign(self.similarity)
            return gallery_scores.count_of_vectors(*more, queries, found, least)
        there = self._ids != kinds.REMOVED
        more = self.similarity, self.description["side"], queries, self._embeddings, there
        return gallery_scores.count_of_embeddings(*more, least)

    def _as_stored(self, vectors):
        """Vectors as the index keeps them: of IVF-PQ what their codes stand for."""
        if self.description["kind"] != "ivfpq":
            return vectors
        return self._rows.sa_decode(self._rows.sa_encode(np.ascontiguousarray(vectors, np.float32)))

    def _would_find(self, queries, items, rows):
        """Whether a search would come upon each pair's item, `(Q, n)`; None where it finds all."""
        if not self._direct:
            limit = int(self.description["candidates"])
            if limit < len(self._row_ids):
                return self._within_candidates(queries, items, rows, limit)
        if self.description["kind"] != "ivfpq":
            return None
        ivf = kinds.parts("ivfpq", self._rows)
        rotation = self._rows.chain.at(0)
        asked, own = (
            rotation.apply(np.ascontiguousarray(x, np.float32))
            for x in (self._space.queries(queries), self._space.gallery(items))
        )
        looked_at = ivf.quantizer.search(asked, ivf.nprobe)[1]
        lists = ivf.quantizer.search(own, 1)[1][:, 0]
        return (lists[np.maximum(rows, 0)][:, :, None] == looked_at[:, None]).any(axis=2)

    def _within_candidates(self, queries, items, rows, limit):
        """Whether each pair's item is nearer than the last candidate of the query or an element."""
        asked, own = self._space.queries(queries), self._space.gallery(items)
        last = self._nearest(asked, limit, self._mask(None))[0][:, -1]
        if self.description["embedding"] != SET:
            values = _pair_values(self._space.metric, asked, own, rows)
            last = last[:, None]
            return values <= last if self._space.metric == "l2" else values >= last
        last = by_query(queries, last[:, None])
        asked, own = unit(queries["elements"]), unit(items["elements"])
        found = np.zeros(rows.shape, bool)
        for query in range(len(rows)):
            theirs = np.maximum(rows[query], 0)
            reached = np.einsum("ed,nkd->nek", asked[query], own[theirs]) >= last[query][:, None]
            if "mask" in queries:
                reached &= queries["mask"][query][:, None]
            if "mask" in items:
                reached &= items["mask"][theirs][:, None]
            found[query] = reached.any(axis=(1, 2))
        return found


def _pair_values(metric, queries, items, rows):
    """FAISS' value of each query and its items, `(Q, n)`."""
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
