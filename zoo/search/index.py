"""Nearest neighbours of distributions and sets, by their own similarity."""

import os
from typing import Any

import faiss
import numpy as np
from numpy.typing import ArrayLike

from zoo.arrays import as_arrays, by_query, length, take, thinned, total_variance
from zoo.confidence import Confidence, QueryScores
from zoo.confidence.insertion import Probed
from zoo.confidence.scores import DEPTH
from zoo.embeddings import SET, EmbeddingLike
from zoo.search import kinds, plan, scoring, storage
from zoo.search.columns import Scratch
from zoo.search.gallery import Gallery
from zoo.search.neighbours import nearest
from zoo.search.probing import probe
from zoo.search.rerank import Reranker, best, unique_candidates
from zoo.similarities.spaces import SPACES


class Index(Gallery):
    """A gallery of embeddings, searched by FAISS and scored in its similarity's own units.

    CSD, W2, the cosine and the distance of means, squared or not, are searched directly, see
    `SearchSpace`: a flat index ranks as the similarity does, HNSW and IVF-PQ lose what they lose on
    any vectors. For all other similarities a space finds `candidates` items and the similarity
    itself ranks those, so the scores are exact and a neighbour beyond the candidates is missed. Of
    sets every element is indexed, and there are so many candidates an element.

    ```python
    photos = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    caption = {"mean": np.array([[0.8, 0.6]]), "log_variance": np.full((1, 2), -2.0)}
    index = zoo.search.Index.build(photos, "csd")
    scores, ids = index.search(caption, k=2)  # ids is [[0, 1]]
    ```

    With a model: `Index.build(model.encode_images(photos), model.similarity)`, and
    `search(model.encode_captions(["a red crown"]), k=10)`.

    Made by `build` and `load`.

    Attributes:
        faiss: the FAISS index, a `faiss.IndexIDMap`. Its rows are items, for sets elements, in the
            order of adding; they have the ids of their items.
        similarity: the layer that scores, or what calls the function.
        description: what the index is, JSON values.
    """

    def __init__(
        self,
        description: dict[str, Any],
        similarity: Any,
        faiss_index: faiss.Index,
        columns: dict[str, np.ndarray],
        scratch: Scratch | None = None,
    ):
        super().__init__(description, similarity, faiss_index, columns, scratch)
        self._effort = self.effort
        self._reranker = Reranker(similarity, description["side"])

    @classmethod
    def build(
        cls,
        gallery_embeddings: EmbeddingLike,
        similarity: Any,
        kind: str = "flat",
        ids: ArrayLike | None = None,
        side: str = "images",
        candidates: int | None = None,
        candidates_by: str | None = None,
        uncertainty_measure: str | None = None,
        training: EmbeddingLike | None = None,
        options: dict[str, int] | None = None,
        scratch: Scratch | None = None,
    ) -> "Index":
        """An index over a gallery.

        Args:
            gallery_embeddings: N embeddings, a dict of arrays or what `encode_*` returned. More
                can follow by `add`.
            similarity: a layer of `zoo.similarities` (scores are its logits, learned scale
                included), one of its functions (scores are the quantity), or a name of
                `zoo.similarities.NAMES`.
            kind: `"flat"` (exact), `"hnsw"` (fast; choose its effort by `zoo.search.tune`) or
                `"ivfpq"` (compressed; scores are approximate unless `candidates` is given).
            ids: N distinct whole numbers ≥ 0; None counts from 0.
            side: `"images"` if the gallery is images and queries are captions, else `"captions"`.
            candidates: how many the similarity ranks itself, by default 200 where it has to. Where
                it need not, a number makes it rank again what IVF-PQ found.
            candidates_by: the space that finds them, a name of `SearchSpace`. CSD with
                `"euclidean"` is PCME++'s own scheme: search μ, rank again by σ.
            uncertainty_measure: of `max_uncertainty`, see `zoo.embeddings.uncertainty`.
            training: embeddings that IVF-PQ is trained on, by default the gallery.
            options: of the kind, see `zoo.search.kinds.create`; and `total`, how many items are to
                come in all, for which room is made at once.
            scratch: where what is kept to rank candidates is written while items are added,
                instead of to memory.

        Raises:
            ValueError: if an argument is not what it has to be, or the gallery is empty.
            TypeError: if `similarity` is none.
        """
        similarity = scoring.resolve(similarity)
        gallery = as_arrays(gallery_embeddings, "gallery_embeddings")
        options = dict(options or {})
        total = options.pop("total", None) or length(gallery)
        description = plan.describe(
            gallery, similarity, kind, side, candidates, candidates_by, uncertainty_measure
        )
        space = SPACES[description["space"]]
        sample = gallery if training is None else as_arrays(training, "training")
        if kind == "ivfpq":
            sample = thinned(sample, kinds.TRAINING_ROWS)
        else:  # only its dimension is asked for
            sample = take(sample, slice(0, 1))
        rows = space.gallery(sample)
        faiss_index = kinds.create(kind, space.metric, rows, total, options)
        room = total * max(1, len(rows)) if kind != "ivfpq" else 0
        kinds.reserve(kind, kinds.rows(faiss_index), room)
        index = cls(description, similarity, faiss_index, {}, scratch)
        index.add(gallery, ids)
        return index

    def search(
        self,
        queries: EmbeddingLike,
        k: int,
        max_uncertainty: float | None = None,
        candidates: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best k items of every query.

        Args:
            queries: Q embeddings, a dict of arrays or what `encode_*` returned.
            k: how many, at most `len(index)`.
            max_uncertainty: leave out gallery items that are less sure than that.
            candidates: how many to rank exactly, if other than the index was built with.

        Returns:
            `(scores, ids)`, float32 and int64 `(Q, k)`, the best first. Where fewer than k items
            are found, because few are sure enough or an approximate index ends early, the rest is
            NaN and −1.

        Raises:
            ValueError: if the queries do not fit the gallery, the index is empty or k is no number
                from 1 to its size; or candidates are given where nothing is ranked again.
        """
        queries = as_arrays(queries, "queries")
        plan.check_queries(self.description, self.similarity, queries)
        if not self._size:
            raise ValueError("the index is empty: there is nothing to search")
        if k != int(k) or not 1 <= k <= self._size:
            raise ValueError(f"`k` must be from 1 to the index's size, {self._size}; received {k}")
        k, mask = int(k), self._mask(max_uncertainty)
        if not self._direct:
            candidates = candidates or self.description["candidates"]
            scores, rows = self._ranked_search(queries, k, mask, max(k, int(candidates)))
        elif candidates is None:
            scores, rows = self._direct_search(queries, k, mask)
        else:
            raise ValueError(
                "`candidates` must be None: this index was built without any, and finds the "
                f"neighbours by {self._space.name!r} itself; received {candidates}"
            )
        ids = self._ids[rows]
        if rows[:, -1].min(initial=0) < 0:  # what is missing comes last
            ids[rows < 0], scores[rows < 0] = -1, np.nan
        return scores, ids

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
        depth = min(DEPTH, self._size)
        if scores is None:
            scores, ids = self.search(queries, max(1, depth))
        top = np.asarray(scores, np.float64)[:, :depth]
        if top.shape != (length(queries), depth) or np.isnan(top).any():
            raise ValueError(
                f"`scores` must be the best {depth} of each query; received shape "
                f"{np.shape(scores)} with {int(np.isnan(top).sum())} missing: raise `effort` or "
                "`candidates`"
            )
        top = scoring.sign(self.similarity) * top
        beside = () if ids is None else self.beside_the_first(ids[:, :depth], copies)
        return QueryScores(top, *self.over_the_gallery(queries), self._size, *beside)

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

    def query_vectors(self, queries: EmbeddingLike) -> np.ndarray:
        """What FAISS is asked for queries: float32 `(rows, dim')` of the index's space."""
        queries = as_arrays(queries, "queries")
        plan.check_queries(self.description, self.similarity, queries)
        return np.ascontiguousarray(self._space.queries(queries), np.float32)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the index into a folder, whole or not at all; see `zoo.search.storage`.

        Raises:
            InputError: if the folder holds other things, or cannot be written.
        """
        description = {**self.description, "similarity": scoring.to_json(self.similarity)}
        storage.write(folder, description, self.faiss, self._columns, self._moments)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike,
        similarity: Any = None,
        verify: bool = True,
        mapped: bool = False,
    ) -> "Index":
        """Reads a saved index. Its columns stay on the disk until they are touched.

        Args:
            folder: what `save` wrote.
            similarity: the one to score with, of the class that the index was built for: that of
                a model trained further, say. None takes the saved one.
            verify: whether to compare the files' checksums, which reads all of them.
            mapped: whether FAISS' part stays on the disk too until it is touched. Nothing can then
                be added or removed.

        Raises:
            InputError: if it is no index, damaged, or of another similarity.
        """
        *parts, moments = storage.read(folder, similarity, verify, mapped)
        index = cls(*parts)
        index.is_mapped = mapped
        storage.check_moments(folder, moments, index._moment_space, index)
        index._moments = moments
        return index

    @property
    def effort(self) -> int | None:
        """How hard an approximate index looks: HNSW's efSearch, IVF-PQ's nprobe; flat has None."""
        return kinds.get_effort(self.description["kind"], self._rows)

    @effort.setter
    def effort(self, effort: int) -> None:
        kinds.set_effort(self.description["kind"], self._rows, effort)
        self._effort = self.effort

    def _nearest(self, queries, k, mask):
        rows = self._space.queries(queries)
        k = min(k, len(self._row_ids))
        effort = self._effort if mask is None else self.effort
        return nearest(self.description["kind"], self._rows, rows, k, mask, effort)

    def _direct_search(self, queries, k, mask):
        values, rows = self._nearest(queries, k, mask)
        if rows[:, -1].min(initial=0) < 0:  # what is missing comes last
            values[rows < 0] = np.nan
        return self._space.scores(values, queries, self._score), rows

    def _ranked_search(self, queries, k, mask, candidates):
        ascending = scoring.least_first(self.similarity)
        values, rows = self._nearest(queries, candidates, mask)
        if self._spread:
            variance = self._columns["spread"].values[rows]
            values = values + variance + total_variance(queries)[:, None]
            values[rows < 0] = np.nan
            return best(self._score(values), rows, k, ascending)
        if self.description["embedding"] == SET:
            rows = np.where(rows < 0, -1, self._owner[rows])
            rows = unique_candidates(by_query(queries, rows))
        scores = self._reranker.scores(queries, self._embeddings, rows)
        return best(scores, rows, k, ascending)
