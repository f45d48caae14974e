"""What follows of a search: scores over the gallery, and probes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from zoo.confidence import Confidence, QueryScores
from zoo.confidence.insertion import Probed, put_there
from zoo.confidence.scores import DEPTH, agreement, reached_ranks
from zoo.embeddings import EmbeddingLike
from zoo.embeddings.arrays import as_arrays, length, take
from zoo.search import plan, scoring
from zoo.search.sharing import reads

_QUERIES = 64  # whose answers' vectors are looked at at once
_KEPT_BYTES = 2**28  # of answers' vectors that are kept
# Share of the probes whose rank is counted over the whole gallery, at most, which takes as long as
# searching two; of a large gallery half of that.
COUNTED, LARGE = 0.2, 50_000


class Searchable:
    """What an index says of queries beyond its answers, by its `similarity`, `own_space`, `centre`,
    `search`, `answer_vectors` and `over_the_gallery`."""

    @reads
    def query_scores(
        self,
        queries: EmbeddingLike,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        copies: float | None = None,
    ) -> QueryScores:
        """What the index says of queries as a whole, a `zoo.confidence.QueryScores`. `scores` and
        `ids` are of a `search` of 20 or all items, without filter; `copies` of a calibration."""
        queries = as_arrays(queries, "queries")
        plan.check_asked(queries, scores, ids)
        if scores is None:
            scores, ids = self.search(queries, max(1, min(DEPTH, len(self))))
        return self.scores_of(queries, scores, ids, copies)

    @reads
    def scores_of(
        self,
        queries: dict[str, np.ndarray],
        scores: np.ndarray,
        ids: np.ndarray | None,
        copies: float | None = None,
        answers: Callable[[slice], np.ndarray] | None = None,
    ) -> QueryScores:
        """`query_scores` of queries that a search has checked, and of what it found; `answers` maps
        a slice of the queries to `answer_vectors` of their best 20."""
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
            beside = self._agreement(np.asarray(ids)[:, :depth], copies, answers)
        return QueryScores(top, *self.over_the_gallery(queries), len(self), *beside)

    def _agreement(self, ids, copies, answers=None):
        """Of answers, `(queries, k)` ids, what `agreement` gives of their vectors."""
        centre = self.centre
        answers = answers or (lambda rows: self.answer_vectors(ids[rows]))
        found = np.empty((len(ids), len(reached_ranks(ids.shape[1]))))
        is_copy = np.zeros(ids.shape, bool)
        for start in range(0, len(ids), _QUERIES):
            rows = slice(start, start + _QUERIES)
            found[rows], is_copy[rows] = agreement(answers(rows), centre, copies)
        return found, is_copy

    @reads
    def probability(
        self,
        queries: EmbeddingLike,
        confidence: Confidence,
        uncertainty: ArrayLike | None = None,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
    ) -> np.ndarray:
        """How likely the first answer to each query is right.

        Args:
            queries: as of `search`.
            confidence: a `zoo.confidence.Confidence`, calibrated on scores of this similarity.
            uncertainty: `(Q,)`, if and only if the calibration had it: for those of a run
                `zoo.embeddings.log_uncertainty` of the queries, by the model's measure.
            scores, ids: as of `query_scores`.

        Returns:
            `(Q,)` in [0, 1]. It is true of queries like those of the calibration, over the gallery
            that it was made on.

        Raises:
            ValueError: as `query_scores` and `Confidence.probability`, or if the calibration was
                made on a gallery of another size.
        """
        confidence.check_size(len(self))
        found = self.query_scores(queries, scores, ids, confidence.copies)
        return confidence.probability(found, uncertainty)

    @reads
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
        items = None if self.own_space is None else self.own_space.item_vectors(own)
        answers = None if items is None else _read_once(self, ids, items.shape[1])
        without = self.scores_of(queries, scores, ids, copies, answers)
        left_out = None
        if self.hubs is not None:
            left_out = self.hubs.left_out(queries, rows, length(own))
        own_scores = self.pair_scores(queries, own, rows, left_out)
        more = ()
        if without.agreement is not None:
            own_vectors = lambda part: items[np.maximum(rows[part], 0)]  # noqa: E731
            more = answers, own_vectors, self.centre, copies
        probed = put_there(without, own_scores, *more)
        _count(self, queries, probed, seed)
        return probed


def _read_once(index, ids, dim):
    """A function of a slice of the probes to their answers' vectors, which are read three times."""
    kept, are_few = {}, 4 * ids.size * dim <= _KEPT_BYTES

    def answers(part):
        bounds = part.start, part.stop
        if bounds in kept:
            return kept[bounds]
        found = index.answer_vectors(ids[part])
        if are_few:
            kept[bounds] = found
        return found

    return answers


def _count(index, queries, probed, seed):
    """Fills in the ranks beyond the answers, of all probes or of a random part of them."""
    beyond = np.isnan(probed.ranks)
    most = COUNTED if len(index) <= LARGE else COUNTED / 2
    if beyond.mean() > most:  # whether a probe is counted must not depend on its rank
        kept = np.random.default_rng(seed).random(len(beyond)) < most / beyond.mean()
        probed.ranks[~kept] = np.nan
        beyond &= kept
    chosen = np.flatnonzero(beyond)
    if len(chosen):
        least = probed.match_scores[chosen]
        probed.ranks[chosen] = 1.0 + index.count_at_least(take(queries, chosen), least)
