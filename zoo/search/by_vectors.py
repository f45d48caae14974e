"""What follows of the vectors of a gallery alone: scores over all of it, and of single pairs."""

import numpy as np

from zoo.embeddings.spaces import SPACES, straight_line
from zoo.search import gallery_scores, scoring
from zoo.search.sharing import reads

_PAIRS = 2**22  # numbers of pairs of vectors at once


class ByVectors:
    """A part of an index whose scores follow from vectors of a `SearchSpace`, `_moment_space`. Its
    class gives `similarity`, `hubs`, `moments` and `_stored_vectors()`."""

    def _scored_by(self, similarity):
        self._score = similarity.scorer()
        self._line = straight_line(self._score)

    @property
    def own_space(self):
        """The space in which the similarity itself is searched, or None."""
        name = self.similarity.space_for(self.description["embedding"])
        return None if name is None else SPACES[name]

    @property
    def centre(self):
        """The mean of the items' vectors in the space of `item_vectors`, `(dim',)` float64."""
        centre = self.vector_moments.mean[:-1]
        return centre if self.hubs is None else centre[:-1]

    @property
    @reads
    def moments(self):
        """The `zoo.confidence.GalleryMoments` of the items, in the space of their scores. A
        ValueError of sets, of similarities that only rank candidates, and of an empty index."""
        if not self.has_moments:
            raise ValueError("this similarity's scores over a gallery do not follow from moments")
        if not len(self):
            raise ValueError("the index is empty: it has no moments")
        if self._moments is None:
            self._moments = gallery_scores.moments_of(self._stored_vectors())
        return self._moments

    @reads
    def vector_sample(self, count, seed=0):
        """The vectors of at most `count` items in `own_space`, drawn at random."""
        return self.answer_vectors(np.random.default_rng(seed).permutation(self.ids)[:count])

    @reads
    def over_the_gallery(self, queries):
        """Mean and variance of the queries' scores over all items."""
        sign = scoring.sign(self.similarity)
        line, space = self._line, self._moment_space
        if line is None:
            found = self._stored_vectors()
            mean, variance = gallery_scores.scan_of_vectors(space, self._score, queries, found)
            return sign * mean, variance
        mean, variance = gallery_scores.by_moments(space, queries, self.moments)
        if space.offset is not None:
            mean = mean + space.offset(queries)
        slope, shift = line
        return sign * (slope * mean + shift), slope**2 * variance

    @reads
    def pair_scores(self, queries, items, rows, left_out=None):
        """Scores `(Q, n)` of queries and rows `(Q, n)` of items as if the index held them, higher
        is better; NaN for row −1, and −∞ behind all candidates. `left_out`: of `CorrectedSpace`."""
        space = self._moment_space
        asked = np.asarray(space.queries(queries), np.float64)
        made = space.gallery(items) if left_out is None else space.gallery(items, left_out)
        values = pair_values(space.metric, asked, np.asarray(made, np.float64), rows)
        scores = np.asarray(space.scores(values, queries, self._score), np.float64)
        return np.where(rows < 0, np.nan, scoring.sign(self.similarity) * scores)

    @reads
    def count_at_least(self, queries, scores):
        """How many of all items score at least as high, `(Q,)`, for each query, int64 `(Q,)`."""
        least, sign = np.asarray(scores, np.float64), scoring.sign(self.similarity)
        more = queries, self._stored_vectors(), least
        return gallery_scores.count_of_vectors(self._moment_space, self._score, sign, *more)


def pair_values(metric, queries, items, rows):
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
