"""What follows of a search, alike of one index and of one in parts."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from zoo.confidence import Confidence, QueryScores
from zoo.confidence.insertion import Probed
from zoo.confidence.scores import DEPTH, beside_the_first, reached_ranks
from zoo.embeddings import EmbeddingLike
from zoo.embeddings.arrays import as_arrays, length
from zoo.search import plan, scoring
from zoo.search.probing import probe
from zoo.search.sharing import reads

_QUERIES = 64  # whose answers' vectors are looked at at once


class Searchable:
    """What an index says of queries beyond its answers; a part of `Index` and `ShardedIndex`.

    These give `similarity`, `own_space`, `centre`, their length, `search`, `answer_vectors` and
    `over_the_gallery`.
    """

    @reads
    def query_scores(
        self,
        queries: EmbeddingLike,
        scores: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        copies: float | None = None,
    ) -> QueryScores:
        """What the index says of queries as a whole, for `zoo.confidence`.

        Mean and variance over the gallery come from its `moments` where scores are a straight line
        in FAISS' value: CSD, the cosine and squared distances. A distance with a root, a divergence
        and the similarities of sets need one pass over the gallery.

        Args:
            queries: Q embeddings, a dict of arrays or what `encode_*` returned.
            scores, ids: `(Q, k)` of `search` with k of at least 20 or the whole gallery, and
                neither filter nor candidates; None searches. Without the ids the answers are not
                known, and so neither is their agreement.
            copies: of `zoo.confidence.agreement`; a calibration knows its own.

        Returns:
            A `zoo.confidence.QueryScores`, higher is better, of distances their negatives. The
            agreement is of the vectors in the similarity's own space; without one there is none.

        Raises:
            ValueError: as `search`, or if fewer than the best 20 items were found.
        """
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
        """`query_scores` of queries that a search has checked, and of what it found.

        `answers` is a function of a slice of the queries to `answer_vectors` of their best 20, for
        who reads them again.
        """
        depth = min(DEPTH, len(self))
        top = np.asarray(scores, np.float64)[:, :depth]
        if top.shape != (length(queries), depth) or np.isnan(top).any():
            raise ValueError(
                f"`scores` must be the best {depth} of each query; received shape "
                f"{np.shape(scores)} with {int(np.isnan(top).sum())} missing: raise `effort` or "
                "`candidates`"
            )
        top = scoring.sign(self.similarity) * top
        beside = ()
        if ids is not None and self.own_space is not None:
            beside = self._beside_the_first(np.asarray(ids)[:, :depth], copies, answers)
        return QueryScores(top, *self.over_the_gallery(queries), len(self), *beside)

    def _beside_the_first(self, ids, copies, answers=None):
        """Of answers, `(queries, k)` ids, what `beside_the_first` gives of their vectors."""
        centre = self.centre
        answers = answers or (lambda rows: self.answer_vectors(ids[rows]))
        found = np.empty((len(ids), len(reached_ranks(ids.shape[1]))))
        is_copy = np.zeros(ids.shape, bool)
        for start in range(0, len(ids), _QUERIES):
            rows = slice(start, start + _QUERIES)
            found[rows], is_copy[rows] = beside_the_first(answers(rows), centre, copies)
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
        """What the index says to probes, see `zoo.search.probing.probe`."""
        return probe(self, queries, own, rows, copies, seed)
