"""A gallery in memory that calibrates as an index does: every pair is scored by the similarity."""

import numpy as np

from zoo import metrics
from zoo.confidence import GalleryMoments, QueryScores
from zoo.confidence.insertion import put_there
from zoo.confidence.scores import best_first
from zoo.embeddings.arrays import as_arrays, length
from zoo.evaluation.answers import item_vectors, space_of
from zoo.metrics.blocks import row_blocks

_IN_BLOCK = 2**22  # similarities


class PairGallery:
    """Items of a split, for `zoo.confidence.calibrate_on`; needs no search engine.

    ```python
    gallery = PairGallery(encoded.images, model.similarity, "images")
    probes.calibrate(gallery)
    ```

    Args:
        items: embeddings, a dict of arrays.
        similarity: a layer, or without `hubs` a function of `zoo.similarities`.
        side: what the items are, `"images"` or `"captions"`.
        hubs: a `zoo.embeddings.csls.CorrectedSpace`, which corrects the scores; None for none.
        left_out: `(N, n)`, the rows of its bank that do not count for each item.
        own_left_out: likewise of the own items of probes; None: what these probes ask.

    Relations: `zoo.search.Index` of the same items says the same, up to rounding, and needs no pass
        over them.
    """

    def __init__(self, items, similarity, side, hubs=None, left_out=None, own_left_out=None):
        self.items, self.similarity = as_arrays(items), similarity
        self.description = {"side": side}
        self.own_space = space_of(self.items, similarity)
        self.vectors = item_vectors(self.items, similarity)
        self.hubs, self._own_left_out = hubs, own_left_out
        self._shifts = self._shifts_of(self.items, left_out)
        self.vector_moments = None if self.vectors is None else GalleryMoments.of(self.vectors)

    def __len__(self):
        return length(self.items)

    def vector_sample(self, count, seed=0):
        """The vectors of at most `count` items, drawn at random."""
        return self.vectors[np.random.default_rng(seed).permutation(len(self))[:count]]

    def query_scores(self, queries, copies=None):
        """The `QueryScores` of queries, a dict of arrays."""
        return self._scores(self._pairs(queries, self.items), copies)

    def scores(self, queries):
        """All scores of queries, a dict of arrays, `(queries, items)` float64."""
        pairs = self._pairs(queries, self.items).kept()
        return pairs.rows(0, length(queries)).astype(np.float64) + self._shifts

    def probe(self, queries, own, rows, copies=None, seed=0):
        """See `zoo.search.probing.probe`; every rank is counted."""
        pairs = self._pairs(queries, self.items).kept()
        own_scores = self._pairs(queries, own).kept().rows(0, len(rows)).astype(np.float64)
        left_out = self._own_left_out
        if self.hubs is not None and left_out is None:
            left_out = self.hubs.left_out(queries, rows, length(own))
        own_scores = own_scores + self._shifts_of(own, left_out)
        own_scores = np.take_along_axis(own_scores, np.maximum(rows, 0), axis=1)
        own_scores[rows < 0] = np.nan
        without = self._scores(pairs, copies)
        if without.agreement is None:
            probed = put_there(without, own_scores)
        else:
            best = np.concatenate([best_first(block) for _, block in self._blocks(pairs)])
            items = self.own_space.item_vectors(own)
            probed = put_there(
                without,
                own_scores,
                lambda part: self.vectors[best[part]],
                lambda part: items[np.maximum(rows[part], 0)],
                self.vector_moments.mean[:-1],
                copies,
            )
        for start, block in self._blocks(pairs):
            part = slice(start, start + len(block))
            before = (block >= probed.match_scores[part, None]).sum(axis=1)
            known = ~np.isnan(probed.ranks[part])
            probed.ranks[part] = np.where(known, probed.ranks[part], 1.0 + before)
        return probed

    def _scores(self, pairs, copies):
        return QueryScores.concatenate(
            [
                QueryScores.of_matrix(block, vectors=self.vectors, copies=copies)
                for _, block in self._blocks(pairs)
            ]
        )

    def _pairs(self, queries, items):
        """`(queries, items)`, computed a block at a time."""
        if self.description["side"] == "images":
            return metrics.PairwiseSimilarity(items, queries, self.similarity).transposed()
        return metrics.PairwiseSimilarity(queries, items, self.similarity)

    def _blocks(self, pairs):
        for start, block in row_blocks(pairs, max(1, _IN_BLOCK // pairs.shape[1])):
            yield start, block if self.hubs is None else block + self._shifts

    def _shifts_of(self, items, left_out=None):
        """What correcting hubs adds to the scores of items, `(items,)`."""
        if self.hubs is None:
            return 0.0
        return self.hubs.shifts(as_arrays(items), self.similarity.scorer(), left_out)
