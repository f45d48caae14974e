"""What an index says of queries beyond its answers: probabilities, and scores over all of it."""

import contextlib
import functools
import operator
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from halo_search.confidence import Confidence, GalleryMoments, QueryScores
from halo_search.confidence.insertion import Probed, put_there
from halo_search.confidence.scores import DEPTH, agreement, reached_ranks
from halo_search.embeddings import EmbeddingLike
from halo_search.embeddings.arrays import as_arrays, length, take
from halo_search.embeddings.spaces import SPACES, straight_line
from halo_search.index import plan, scoring
from halo_search.index.exact import pair_values

_QUERIES = 64  # whose answers' vectors are looked at at once
# Share of the probes whose rank is counted over the whole gallery, at most, which takes as long as
# searching two; of a large gallery half of that.
COUNTED, LARGE = 0.2, 50_000
CHUNK = 65536  # vectors that are looked at at once
_BLOCK = 2**22  # scores at once that are a product of vectors
_PAIRS = 2**16  # that a similarity computes, which may take many numbers for each
_ITEMS, _BYTES = 4096, 2**26  # of a gallery at once, at most


def alone(method):
    """A method of an object that holds its `lock` while it runs. FAISS uses all cores for one
    search, so that threads beside each other would gain little."""

    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with self.lock:
            return method(self, *args, **kwargs)

    return locked


class Searchable:
    """An index whose scores follow from vectors of a `SearchSpace`, `_space`. Its class has
    `similarity`, `hubs`, `lock`, `search`, `answer_vectors` and `_stored_vectors`."""

    @property
    def _score(self):
        """Function from the space's values to scores."""
        return self.similarity.scorer()

    def _prepared(self, chunk, first):
        """The vectors of new items, which were checked; `first` is the first's number."""
        vectors = self._space.gallery(chunk)
        plan.warn_of_zeros(self.description, vectors, "gallery_embeddings", first)
        return vectors

    @contextlib.contextmanager
    def saving(self, folder: str | os.PathLike) -> Iterator[None]:
        """Saves into a folder, for a block that writes what lies beside. An index in memory is as
        it was where the block fails; `LanceIndex` then stays where it was."""
        self.save(folder)
        yield

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
    @alone
    def moments(self):
        """The `halo_search.confidence.GalleryMoments` of the items, in the space of their scores. A
        ValueError of sets, of similarities that only rank candidates, and of an empty index."""
        if not self.has_moments:
            raise ValueError("this similarity's scores over a gallery do not follow from moments")
        if not len(self):
            raise ValueError("the index is empty: it has no moments")
        if self._moments is None:
            self._moments = moments_of(self._stored_vectors())
        return self._moments

    @alone
    def vector_sample(self, count, seed=0):
        """The vectors of at most `count` items in `own_space`, drawn at random."""
        return self.answer_vectors(np.random.default_rng(seed).permutation(self.ids)[:count])

    def _all_scores(self, queries, kind=np.float64):
        """Yields `(slice of the queries, scores (some, items))` over all items, higher is
        better."""
        parts, sign = self._stored_vectors(), scoring.sign(self.similarity)
        return of_vectors(self._space, self._score, sign, queries, parts, kind)

    @alone
    def over_the_gallery(self, queries):
        """Mean and variance of the queries' scores over all items."""
        space = self._space
        line = straight_line(self._score) if self.has_moments else None
        if line is None:
            return mean_and_variance(self._all_scores(queries), length(queries))
        rows = space.queries(queries)
        if space.metric == "l2":
            mean, variance = self.moments.squared_distance_scores(rows)
            mean = -mean
        else:
            mean, variance = self.moments.inner_product_scores(rows)
        if space.offset is not None:
            mean = mean + space.offset(queries)
        slope, shift = line
        return scoring.sign(self.similarity) * (slope * mean + shift), slope**2 * variance

    @alone
    def pair_scores(self, queries, items, rows, left_out=None):
        """Scores `(Q, n)` of queries and rows `(Q, n)` of items as if the index held them, higher
        is better; NaN for row −1, and −∞ behind all candidates. `left_out`: of `CorrectedSpace`."""
        space = self._space
        asked = np.asarray(space.queries(queries), np.float64)
        made = space.gallery(items) if left_out is None else space.gallery(items, left_out)
        values = pair_values(space.metric, asked, np.asarray(made, np.float64), rows)
        scores = np.asarray(space.scores(values, queries, self._score), np.float64)
        return np.where(rows < 0, np.nan, scoring.sign(self.similarity) * scores)

    @alone
    def count_at_least(self, queries, scores):
        """How many of all items score at least as high, `(Q,)`, for each query, int64 `(Q,)`."""
        least = np.asarray(scores, np.float64)
        return counted_at_least(self._all_scores(queries, np.float32), least)

    @alone
    def query_scores(
        self,
        queries: EmbeddingLike,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        copies: float | None = None,
    ) -> QueryScores:
        """What the index says of queries as a whole, a `halo_search.confidence.QueryScores`.
        `scores` and `ids` are of a `search` of 20 or all items, without filter; `copies` of a
        calibration."""
        queries = as_arrays(queries, "queries")
        plan.check_asked(queries, scores, ids)
        if scores is None:
            scores, ids = self.search(queries, max(1, min(DEPTH, len(self))))
        return self.scores_of(queries, scores, ids, copies)

    @alone
    def scores_of(
        self,
        queries: dict[str, np.ndarray],
        scores: np.ndarray,
        ids: np.ndarray | None,
        copies: float | None = None,
    ) -> QueryScores:
        """`query_scores` of queries that a search has checked, and of what it found."""
        depth = min(DEPTH, len(self))
        top = np.asarray(scores, np.float64)[:, :depth]
        if top.shape != (length(queries), depth) or np.isnan(top).any():
            raise ValueError(
                f"`scores` must be the best {depth} of each query; received shape "
                f"{np.shape(scores)} with {int(np.isnan(top).sum())} missing: raise "
                "`candidates`"
            )
        top = scoring.sign(self.similarity) * top
        beside = ()
        if ids is not None and self.own_space is not None:
            ids, centre = np.asarray(ids)[:, :depth], self.centre
            beside = np.empty((len(ids), len(reached_ranks(depth)))), np.zeros(ids.shape, bool)
            for start in range(0, len(ids), _QUERIES):
                rows = slice(start, start + _QUERIES)
                vectors = self.answer_vectors(ids[rows])
                beside[0][rows], beside[1][rows] = agreement(vectors, centre, copies)
        return QueryScores(top, *self.over_the_gallery(queries), len(self), *beside)

    @alone
    def probability(
        self,
        queries: EmbeddingLike,
        confidence: Confidence,
        uncertainty: ArrayLike | None = None,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
    ) -> np.ndarray:
        """How likely the first answer to each query is right, `(Q,)` in [0, 1]: of queries like
        those of the calibration, over the gallery that it was made on.

        Args:
            queries: as of `search`.
            confidence: a `halo_search.confidence.Confidence`, calibrated on scores of this
            similarity.
            uncertainty: `(Q,)`, if and only if the calibration had it: for those of a run
                `zoo.embeddings.log_uncertainty` of the queries, by the model's measure.
            scores, ids: as of `query_scores`.

        Raises:
            ValueError: as `query_scores` and `Confidence.probability`, or if the gallery has
                another size.
        """
        if confidence.is_void(len(self)):
            raise ValueError(
                f"the calibration was made on a gallery of {confidence.gallery.size:,} items and "
                f"is not true of one of {len(self):,}: calibrate on this gallery, see "
                "halo_search.confidence.calibrate_on"
            )
        summary = self.query_scores(queries, scores, ids, confidence.copies)
        return confidence.probability(summary, uncertainty)

    @alone
    def probe(
        self,
        queries: EmbeddingLike,
        own: EmbeddingLike,
        rows: np.ndarray,
        copies: float | None = None,
        seed: int = 0,
    ) -> Probed:
        """What the index says to probes; it stays as it is. `rows` `(Q, n)` of `own`, or −1, are
        what each query wants. A random part of many ranks is not counted: NaN."""
        queries, own = as_arrays(queries, "queries"), as_arrays(own, "own")
        if not len(self):
            raise ValueError("the index is empty: there is nothing to calibrate on")
        plan.check_items(self.description, own, "own")
        scores, ids = self.search(queries, min(DEPTH, len(self)))
        without = self.scores_of(queries, scores, ids, copies)
        left_out = None
        if self.hubs is not None:
            left_out = self.hubs.left_out(queries, rows, length(own))
        match_scores = self.pair_scores(queries, own, rows, left_out)
        more = ()
        if without.agreement is not None:
            items = self.own_space.item_vectors(own)
            more = (
                lambda part: self.answer_vectors(ids[part]),
                lambda part: items[np.maximum(rows[part], 0)],
                self.centre,
                copies,
            )
        probed = put_there(without, match_scores, *more)
        beyond = np.isnan(probed.ranks)  # the answers: counted, of all probes or a random part
        most = COUNTED if len(self) <= LARGE else COUNTED / 2
        if beyond.mean() > most:  # whether a probe is counted must not depend on its rank
            is_counted = np.random.default_rng(seed).random(len(beyond)) < most / beyond.mean()
            probed.ranks[~is_counted] = np.nan
            beyond &= is_counted
        if len(chosen := np.flatnonzero(beyond)):
            least = probed.match_scores[chosen]
            probed.ranks[chosen] = 1.0 + self.count_at_least(take(queries, chosen), least)
        return probed


def of_vectors(space, score, sign, queries, parts, kind):
    """Yields `(slice of the queries, scores (some, items))`, higher is better, of vectors of a
    space that come in parts, by a function of FAISS' value from products in `kind`."""
    rows = np.asarray(space.queries(queries), kind)
    norms = np.square(rows, dtype=np.float64).sum(axis=1)[:, None]
    shift = np.zeros(len(rows)) if space.offset is None else space.offset(queries)
    shift = np.asarray(shift, np.float64)[:, None]
    for part in parts:
        part = part.astype(kind, copy=False)
        part_norms = np.square(part, dtype=np.float64).sum(axis=1)
        for chosen in _slices(len(rows), _BLOCK // len(part)):
            values = rows[chosen] @ part.T
            if space.metric == "l2":
                values = np.maximum(norms[chosen] + part_norms - 2 * values, 0)
            yield chosen, sign * score(values + shift[chosen])


def of_embeddings(similarity, side, queries, gallery):
    """`of_vectors` of a gallery that is kept as embeddings, by the similarity itself."""
    sign, item = scoring.sign(similarity), sum(value[:1].nbytes for value in gallery.values())
    for part in _slices(length(gallery), min(_ITEMS, _BYTES // max(1, item))):
        items = take(gallery, part)
        for chosen in _slices(length(queries), _PAIRS // length(items)):
            some = take(queries, chosen)
            pair = (items, some) if side == "images" else (some, items)
            scores = np.array(similarity(*pair), np.float64)
            scores = sign * scoring.finite(similarity, scores)
            yield chosen, scores.T if side == "images" else scores


def mean_and_variance(blocks, count):
    """Mean and variance of the scores of each of `count` queries, `(count,)` each."""
    total, mean, spread = np.zeros((3, count))
    for chosen, scores in blocks:
        size, before = scores.shape[1], total[chosen]
        part_mean = scores.mean(axis=1)
        shift = part_mean - mean[chosen]
        # Chan et al. 1982, as `GalleryMoments` adds up shards.
        mean[chosen] += shift * size / (before + size)
        spread[chosen] += size * scores.var(axis=1) + shift**2 * before * size / (before + size)
        total[chosen] += size
    return mean, spread / total


def counted_at_least(blocks, least):
    """How many scores of each query are at least as high as `least` `(queries,)`, int64."""
    count = np.zeros(len(least), np.int64)
    for chosen, scores in blocks:
        count[chosen] += np.count_nonzero(scores >= least[chosen, None], axis=1)
    return count


def moments_of(parts):
    """The `GalleryMoments` of vectors that come in parts."""
    return functools.reduce(operator.add, map(GalleryMoments.of, parts))


def _slices(count, step):
    """Slices of at most `step` rows, and of one at least, over `count` rows."""
    step = max(1, step)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
