"""Nearest neighbours of distributions and sets, by their own similarity."""

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zoo.embeddings import SET, EmbeddingLike
from zoo.embeddings.arrays import as_arrays, length, take, total_variance
from zoo.embeddings.csls import CorrectedSpace
from zoo.embeddings.spaces import SPACES
from zoo.search import flat, plan, scoring, storage
from zoo.search.gallery import Gallery
from zoo.search.neighbours import first
from zoo.search.rerank import best, by_query, unique_candidates
from zoo.search.searchable import Searchable
from zoo.search.sharing import reads


class Index(Searchable, Gallery):
    """A gallery of embeddings in memory, searched exactly and scored in its similarity's units.

    FAISS searches CSD, W2, the cosine and the distance of means, squared or not, directly, see
    `SearchSpace`: it ranks as the similarity does. For all other similarities a space finds
    `candidates` items and the similarity itself ranks those, so the scores are exact and a
    neighbour beyond the candidates is missed. Of sets every element is indexed, and there are so
    many candidates an element.

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
        faiss: the FAISS index, a flat `faiss.IndexIDMap`. Its rows are items, for sets elements, in
            the order of adding; they have the ids of their items.
        similarity: the layer that scores, or what calls the function.
        description: what the index is, JSON values.
    """

    @classmethod
    def build(
        cls,
        gallery_embeddings: EmbeddingLike,
        similarity: Any,
        ids: ArrayLike | None = None,
        side: str = "images",
        candidates: int | None = None,
        candidates_by: str | None = None,
        uncertainty_measure: str | None = None,
        hubs: EmbeddingLike | CorrectedSpace | None = None,
    ) -> "Index":
        """An index over a gallery.

        Args:
            gallery_embeddings: N embeddings, a dict of arrays or what `encode_*` returned. More
                can follow by `add`.
            similarity: a layer of `zoo.similarities` (scores are its logits, learned scale
                included), one of its functions (scores are the quantity), or a name of
                `zoo.similarities.NAMES`.
            ids: N distinct whole numbers ≥ 0; None counts from 0.
            side: `"images"` if the gallery is images and queries are captions, else `"captions"`.
            candidates: how many the similarity ranks itself, by default 200 where it has to.
            candidates_by: the space that finds them, a name of `SearchSpace`. CSD with
                `"euclidean"` is PCME++'s own scheme: search μ, rank again by σ.
            uncertainty_measure: of `max_uncertainty`, see `zoo.embeddings.uncertainty`.
            hubs: embeddings of a bank of some hundred questions, such as those of a model's
                probes. An item that is near to all questions answers too many of them: it is
                ranked lower by as much as it is near, see `zoo.embeddings.csls`, and scores are
                the corrected ones. For CSD, the cosine and what else is a straight line in what
                FAISS compares. None: no correction.

        Raises:
            ValueError: if an argument is not what it has to be, or the gallery is empty.
            TypeError: if `similarity` is none.
        """
        similarity = scoring.resolve(similarity)
        gallery = as_arrays(gallery_embeddings, "gallery_embeddings")
        description = plan.describe(
            gallery, similarity, side, candidates, candidates_by, uncertainty_measure
        )
        space = plan.searched_space(description, similarity, gallery, hubs)
        rows = space.gallery(take(gallery, slice(0, 1)))  # for its dimension
        faiss_index = flat.create(space.metric, rows.shape[1])
        flat.reserve(flat.rows(faiss_index), length(gallery) * max(1, len(rows)))
        index = cls(description, similarity, faiss_index, {}, None if hubs is None else space)
        index.add(gallery, ids)
        return index

    @reads
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
            are found, because few are sure enough or among the candidates, the rest is NaN and −1.

        Raises:
            ValueError: if the queries do not fit the gallery, the index is empty or k is no number
                from 1 to its size; or candidates are given where nothing is ranked again.
        """
        queries = plan.checked_queries(self.description, self.similarity, queries)
        k = plan.checked_k(k, len(self))
        if self._direct and candidates is not None:
            raise ValueError(
                "`candidates` must be None: this index was built without any, and finds the "
                f"neighbours by {self._space.name!r} itself; received {candidates}"
            )
        vectors = self._space.queries(queries)
        plan.warn_of_zeros(self.description, vectors, "queries")
        mask, ascending = self._mask(max_uncertainty), scoring.least_first(self.similarity)
        if self._direct:
            scores, rows = self._first(vectors, k, mask, self._scores_of(queries), ascending)
        else:
            count = max(k, int(candidates or self.description["candidates"]))
            values, rows = self._nearest(vectors, count, mask)
            if self._spread:
                values = values + self._columns["spread"].values[rows]
                scores = self._score(values + total_variance(queries)[:, None])
            else:
                if self.description["embedding"] == SET:
                    rows = np.where(rows < 0, flat.NONE, self._owner[rows])
                    rows = unique_candidates(by_query(queries, rows))
                scores = self._reranker.scores(queries, self._embeddings, rows)
            scores, rows = best(scores, rows, k, ascending, self._ids)
        ids = self._ids[rows]
        if rows[:, -1].min(initial=0) < 0:
            ids[rows < 0], scores[rows < 0] = flat.NONE, np.nan
        return scores, ids

    def query_vectors(self, queries: EmbeddingLike) -> np.ndarray:
        """What FAISS is asked for queries: float32 `(rows, dim')` of the index's space."""
        queries = plan.checked_queries(self.description, self.similarity, queries)
        return np.ascontiguousarray(self._space.queries(queries), np.float32)

    @reads
    def save(self, folder: str | os.PathLike) -> None:
        """Writes the index into a folder, whole or not at all; see `zoo.search.storage`.

        Raises:
            InputError: if the folder holds other things, or cannot be written.
        """
        description = scoring.described(self.description, self.similarity, self.has_moments)
        bank = None if self.hubs is None else self.hubs.bank
        columns = {name: column.values for name, column in self._columns.items()}
        storage.write(folder, description, self.faiss, columns, self._moments, bank)

    @classmethod
    def load(
        cls, folder: str | os.PathLike, similarity: Any = None, verify: bool = True
    ) -> "Index":
        """Reads a saved index.

        Args:
            folder: what `save` wrote.
            similarity: the one to score with, of the class that the index was built for: that of
                a model trained further, say. None takes the saved one, and the class
                `scoring.Portable` its numbers alone, without Keras.
            verify: whether to compare the files' checksums.

        Raises:
            InputError: if it is no index, damaged, or of another similarity.
        """
        *parts, moments, bank = storage.read(folder, similarity, verify)
        hubs, description = None, parts[0]
        if bank is not None:
            base, ceiling = SPACES[description["space"]], description["hubs"]["ceiling"]
            hubs = CorrectedSpace(base, bank, ceiling)
        index = cls(*parts, hubs=hubs)
        storage.check_moments(folder, moments, index._moment_space, index)
        index._moments = moments
        return index

    def _scores_of(self, queries):
        """A function of FAISS' values and of which queries they are to scores."""

        def scores(values, chosen):
            return self._space.scores(values, take(queries, chosen), self._score)

        return scores

    def _nearest(self, vectors, k, mask):
        """`(FAISS' values, rows)`, the nearest first."""
        ascending = self._space.metric == "l2"
        return self._first(vectors, k, mask, lambda values, chosen: values, ascending)

    def _first(self, vectors, k, mask, score_of, ascending):
        k = min(k, len(self._row_ids))
        longest = self._longest() if self._space.metric == "inner_product" else None
        more = self._row_ids, score_of, ascending, longest, mask
        return first(self._rows, vectors, k, *more)
