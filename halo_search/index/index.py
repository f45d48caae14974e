"""Nearest neighbours of distributions and sets, by their own similarity."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halo_search.confidence import GalleryMoments
from halo_search.embeddings import SET, EmbeddingLike
from halo_search.embeddings.arrays import as_arrays, element_owners, length, take, unit
from halo_search.embeddings.csls import CorrectedSpace
from halo_search.embeddings.spaces import SPACES
from halo_search.index import exact, plan, scoring, searchable, storage
from halo_search.index.columns import Column, assign_ids, held_ids, refuse_missing
from halo_search.index.exact import best, by_query, rescored, unique_candidates
from halo_search.index.searchable import Searchable, alone

CHUNK = 16384  # items turned into vectors at once


class Index(Searchable):
    """A gallery of embeddings in memory, searched exactly and scored in its similarity's units.

    FAISS searches CSD, W2, the cosine and the distance of means directly, see `SearchSpace`. For
    other similarities a space finds `candidates` items (of sets so many an element) and the
    similarity ranks those: scores are exact, and a neighbour beyond the candidates is missed.

    ```python
    photos = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    caption = {"mean": np.array([[0.8, 0.6]]), "log_variance": np.full((1, 2), -2.0)}
    index = halo_search.index.Index.build(photos, "csd")
    scores, ids = index.search(caption, k=2)  # ids is [[0, 1]]
    ```

    Made by `build` and `load`; of a model `Index.build(model.encode_images(photos),
    model.similarity)`, searched with `model.encode_captions(["a red crown"])`.

    Attributes:
        faiss: the FAISS index, a flat `faiss.IndexIDMap`, whose rows are items, for sets elements,
            in the order of adding, with the ids of their items.
        similarity: the layer that scores, or what calls the function.
        description: what the index is, JSON values.
    """

    engine = "memory"

    def __init__(self, description, similarity, faiss_index, columns, hubs=None):
        self.description, self.similarity, self.faiss = description, similarity, faiss_index
        self._rows = exact.flat_of(faiss_index)
        self.hubs, self._space = hubs, hubs or SPACES[description["space"]]  # a `CorrectedSpace`
        self.has_moments = plan.is_direct(description, similarity)  # may score over the gallery
        self._columns = {name: Column(values) for name, values in columns.items()}
        self._moments, self.lock = None, threading.RLock()
        self._saved = None, None  # the folder of the last load or save, and its data then
        self._changed()

    @classmethod
    def build(
        cls,
        gallery_embeddings: EmbeddingLike,
        similarity: Any,
        ids: ArrayLike | None = None,
        side: str = "images",
        candidates: int | None = None,
        candidates_by: str | None = None,
        hubs: EmbeddingLike | CorrectedSpace | None = None,
    ) -> "Index":
        """An index over a gallery.

        Args:
            gallery_embeddings: N embeddings, a dict of arrays or what `encode_*` returned. More can
                follow by `add`.
            similarity: a layer of `zoo.similarities` (scores are its logits), one of its functions
                (scores are the quantity), or a name of `zoo.similarities.NAMES`.
            ids: N distinct whole numbers ≥ 0; None counts from 0.
            side: `"images"` if the gallery is images and queries are captions, else `"captions"`.
            candidates: how many the similarity ranks itself, by default 200 where it has to.
            candidates_by: the space that finds them, a name of `SearchSpace`. CSD with
                `"euclidean"` is PCME++'s own scheme: search μ, rank again by σ.
            hubs: embeddings of some hundred questions: an item ranks lower by as much as it is near
                to all of them, see `halo_search.embeddings.csls`, and scores are the corrected
                ones. For CSD, the cosine and what else is a straight line in what FAISS compares.
                None: no correction.

        Raises:
            ValueError: if an argument is not what it has to be, or the gallery is empty.
            TypeError: if `similarity` is none.
        """
        similarity = scoring.resolve(similarity)
        gallery = as_arrays(gallery_embeddings, "gallery_embeddings")
        description = plan.describe(gallery, similarity, side, candidates, candidates_by)
        space = plan.searched_space(description, similarity, gallery, hubs)
        rows = space.gallery(take(gallery, slice(0, 1)))  # for its dimension
        faiss_index = exact.create(space.metric, rows.shape[1])
        exact.reserve(exact.flat_of(faiss_index), length(gallery) * max(1, len(rows)))
        index = cls(description, similarity, faiss_index, {}, None if hubs is None else space)
        index.add(gallery, ids)
        return index

    @alone
    def search(
        self,
        queries: EmbeddingLike,
        k: int,
        candidates: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best k items of every query.

        Args:
            queries: Q embeddings, a dict of arrays or what `encode_*` returned.
            k: how many, at most `len(index)`.
            candidates: how many to rank exactly, if other than the index was built with.

        Returns:
            `(scores, ids)`, float32 and int64 `(Q, k)`, best first; NaN and −1 behind all
            candidates.

        Raises:
            ValueError: if the queries do not fit the gallery, the index is empty, k is no number
                from 1 to its size, or candidates are given where nothing is ranked again.
        """
        queries = plan.checked_queries(self.description, self.similarity, queries)
        k = plan.checked_k(k, len(self))
        if self.has_moments and candidates is not None:
            raise ValueError(
                "`candidates` must be None: this index was built without any, and finds the "
                f"neighbours by {self._space.name!r} itself; received {candidates}"
            )
        vectors = self._space.queries(queries)
        plan.warn_of_zeros(self.description, vectors, "queries")
        ascending = scoring.sign(self.similarity) < 0
        if self.has_moments:

            def score_of(values, chosen):
                return self._space.scores(values, take(queries, chosen), self._score)

            scores, rows = self._nearest(vectors, k, score_of, ascending)
        else:
            count = max(k, int(candidates or self.description["candidates"]))
            rows = self._nearest(vectors, count)[1]
            if self.description["embedding"] == SET:
                rows = np.where(rows < 0, exact.NONE, self._owner[rows])
                rows = unique_candidates(by_query(queries, rows))
            side, gallery = self.description["side"], self._embeddings
            scores = rescored(self.similarity, side, queries, gallery, rows)
            scores, rows = best(scores, rows, k, ascending, self._ids)
        ids = self._ids[rows]
        if rows[:, -1].min(initial=0) < 0:
            ids[rows < 0], scores[rows < 0] = exact.NONE, np.nan
        return scores, ids

    def query_vectors(self, queries: EmbeddingLike) -> np.ndarray:
        """What FAISS is asked for queries: float32 `(rows, dim')` of the index's space."""
        queries = plan.checked_queries(self.description, self.similarity, queries)
        return np.ascontiguousarray(self._space.queries(queries), np.float32)

    @alone
    def save(self, folder: str | os.PathLike) -> None:
        """Writes a folder, whole or not at all, see `halo_search.index.storage`; an InputError if
        it holds other things, cannot be written, or was saved by others since it was loaded."""
        description = scoring.described(self.description, self.similarity, self.has_moments)
        bank = None if self.hubs is None else self.hubs.bank
        columns = {name: column.values for name, column in self._columns.items()}
        where, (before, data) = Path(folder).resolve(), self._saved
        content = description, self.faiss, columns, self._moments, bank
        data = storage.write(folder, *content, data if where == before else None)
        self._saved = where, data

    @classmethod
    def load(cls, folder: str | os.PathLike, similarity: Any = None) -> "Index":
        """Reads what `save` wrote, to score by its own similarity, or by `similarity` of the same
        class: that of a model trained further, or the class `scoring.Portable`, which needs no
        Keras. An InputError if it is no index, damaged, or of another similarity."""
        *parts, moments, bank = storage.read(folder, similarity)
        index = cls(*parts, hubs=plan.saved_space(parts[0], bank))
        index._moments, index._saved = moments, (Path(folder).resolve(), parts[0]["data"])
        return index

    @alone
    def add(self, gallery_embeddings, ids=None):
        """Adds items of the gallery's kind, and returns their ids, int64 `(items,)`; None continues
        after the largest so far. A ValueError if they do not fit, an id is taken, or a variance or
        vector is too large for float32: nothing has then been added."""
        arrays = as_arrays(gallery_embeddings, "gallery_embeddings")
        plan.check_gallery(self.description, arrays, self._columns)
        count = length(arrays)
        ids = assign_ids(ids, count, self._ids, self.description["next_id"])
        before = self.faiss.ntotal, len(self._ids), self._moments
        try:
            for start in range(0, count, CHUNK):
                chosen = slice(start, start + CHUNK)
                self._add_chunk(take(arrays, chosen), ids[chosen], start)
        except BaseException:
            rows, items, self._moments = before
            exact.row_ids(self.faiss)[rows:] = exact.NONE
            exact.remove(self.faiss, np.array([exact.NONE]))
            for column in self._columns.values():
                column.keep(slice(items))
            self._changed()
            raise
        self._changed()
        last = int(ids.max(initial=-1))
        self.description["next_id"] = max(self.description["next_id"], last + 1)
        return ids

    def _add_chunk(self, chunk, ids, first):
        """Adds some items. All checks come before FAISS has a row of them."""
        vectors, beside = self._prepared(chunk, first), {}
        if self._moments is not None:
            self._moments += GalleryMoments.of(vectors)
        if not self.has_moments:
            beside |= {plan.KEPT + key: value for key, value in chunk.items()}
        if self.description["embedding"] == SET:
            beside["ids"], ids = ids, ids[element_owners(chunk)]
        for name, values in beside.items():
            self._columns.setdefault(name, Column(values[:0])).append(values)
        self.faiss.add_with_ids(vectors, ids)

    @alone
    def remove(self, ids):
        """Removes items, each id once; a ValueError if one is not there, then none is."""
        ids = held_ids(ids, self.ids)
        gone = np.isin(self._ids, ids)
        exact.remove(self.faiss, ids)
        for column in self._columns.values():
            column.keep(~gone)
        self._moments = None  # to be taken again of what is left
        self._changed()

    def reserve(self, items):
        """Makes room for further items at once, so that adding in parts never copies the index."""
        exact.reserve(self._rows, items * max(1, self.faiss.ntotal // max(1, len(self._ids))))

    def __len__(self):
        return len(self._ids)

    @property
    @alone
    def ids(self):
        """The ids in the index, int64 `(len(index),)`, in the order of adding."""
        return np.array(self._ids)

    @property
    @alone
    def vector_moments(self):
        """The `halo_search.confidence.GalleryMoments` of `item_vectors`, or None without a
        space."""
        if self.has_moments:
            return self.moments
        if self.own_space is None:
            return None
        if self._vector_moments is None:
            places = np.arange(len(self))
            parts = (places[start : start + CHUNK] for start in range(0, len(self), CHUNK))
            self._vector_moments = searchable.moments_of(map(self.item_vectors, parts))
        return self._vector_moments

    @alone
    def part(self, ids):
        """An index of some of the items alone, in memory, in the order of this one; a ValueError if
        an id is not here, or given twice."""
        places = np.sort(self.places(held_ids(ids, self._ids, "among")))
        is_set = self.description["embedding"] == SET
        rows = np.flatnonzero(np.isin(self._owner, places)) if is_set else places
        made = exact.create(self._space.metric, self.faiss.d)
        made.add_with_ids(exact.vectors(self._rows)[rows], np.array(self._row_ids[rows]))
        columns = {name: column.values[places] for name, column in self._columns.items()}
        return type(self)(dict(self.description), self.similarity, made, columns, self.hubs)

    @alone
    def answer_vectors(self, ids):
        """The vectors of answers in `own_space`, `(queries, k, dim')` of `(queries, k)` ids."""
        places = self.places(ids)
        refuse_missing(np.asarray(ids)[places == exact.NONE])
        vectors = self.item_vectors(places.ravel())
        return vectors.reshape(*places.shape, vectors.shape[1])

    @alone
    def places(self, ids):
        """The row in which each id stands, in vectors and columns; −1 of an id that the index does
        not hold."""
        held = self._ids
        if not len(held):
            return np.full(np.shape(ids), exact.NONE)
        if self._order is None:
            self._order = np.argsort(held, kind="stable")
        first = np.searchsorted(held, ids, sorter=self._order)
        rows = self._order[np.minimum(first, len(held) - 1)]
        return np.where(held[rows] == ids, rows, exact.NONE)

    @alone
    def item_vectors(self, places):
        """The vectors of items in `own_space`, float32; of sets the means of their elements. By
        rows of the columns, `(items,)`. What corrects hubs is no part of them."""
        if not self.has_moments:
            return self.own_space.item_vectors(take(self._embeddings, places))
        vectors = exact.vectors(self._rows)[places]
        return vectors if self.hubs is None else vectors[:, :-1]

    def _all_scores(self, queries, kind=np.float64):
        """As of `Searchable`; if candidates are ranked, the scores are the similarity's."""
        if self.has_moments:
            return super()._all_scores(queries, kind)
        more = self.description["side"], queries, self._embeddings
        return searchable.of_embeddings(self.similarity, *more)

    @alone
    def pair_scores(self, queries, items, rows, left_out=None):
        """As of `Searchable`, also where candidates are ranked by the similarity itself."""
        if self.has_moments:
            return super().pair_scores(queries, items, rows, left_out)
        scores = rescored(self.similarity, self.description["side"], queries, items, rows)
        scores = scoring.sign(self.similarity) * scores.astype(np.float64)
        if int(self.description["candidates"]) < self.faiss.ntotal:
            is_candidate = self._within_candidates(queries, items, rows)
            scores = np.where(is_candidate, scores, -np.inf)
        return np.where(rows < 0, np.nan, scores)

    def _within_candidates(self, queries, items, rows):
        """Whether each pair's item is nearer than the last candidate of the query or an element."""
        asked, vectors = self._space.queries(queries), self._space.gallery(items)
        last = self._nearest(asked, int(self.description["candidates"]))[0][:, -1]
        if self.description["embedding"] != SET:
            values = exact.pair_values(self._space.metric, asked, vectors, rows)
            last = last[:, None]
            return values <= last if self._space.metric == "l2" else values >= last
        last = by_query(queries, last[:, None])
        asked, vectors = unit(queries["elements"]), unit(items["elements"])
        is_within = np.zeros(rows.shape, bool)
        for query in range(len(rows)):
            theirs = np.maximum(rows[query], 0)
            reached = (
                np.einsum("ed,nkd->nek", asked[query], vectors[theirs]) >= last[query][:, None]
            )
            if "mask" in queries:
                reached &= queries["mask"][query][:, None]
            if "mask" in items:
                reached &= items["mask"][theirs][:, None]
            is_within[query] = reached.any(axis=(1, 2))
        return is_within

    def _stored_vectors(self):
        """Yields the vectors of all items in the space of their scores, a part at a time."""
        vectors = exact.vectors(self._rows)
        for start in range(0, len(vectors), searchable.CHUNK):
            yield vectors[start : start + searchable.CHUNK]

    @property
    def _ids(self):
        """The id of every row of the columns."""
        if self.description["embedding"] != SET:
            return self._row_ids
        return self._columns["ids"].values if "ids" in self._columns else np.empty(0, np.int64)

    def _changed(self):
        """Looks at FAISS' ids again; asking for them in every search would slow it."""
        self._row_ids = exact.row_ids(self.faiss)
        self._owners = self._order = self._vector_moments = self._length = None

    @property
    def _longest(self):
        """The length of the longest vector."""
        if self._length is None:
            parts = self._stored_vectors()
            squares = (np.einsum("nd,nd->n", part, part).max() for part in parts)
            self._length = float(np.sqrt(max(squares, default=0.0)))
        return self._length

    @property
    def _owner(self):
        """The item, as a row of the columns, of every row of FAISS; of sets only."""
        if self._owners is None:
            self._owners = self.places(self._row_ids)
        return self._owners

    @property
    def _embeddings(self):
        """The gallery itself, where candidates are ranked by it."""
        return {
            name.removeprefix(plan.KEPT): column.values
            for name, column in self._columns.items()
            if name.startswith(plan.KEPT)
        }

    def _nearest(self, vectors, k, score_of=None, ascending=None):
        """The first rows by a score of FAISS' values, `(scores, rows)`; by default the nearest."""
        is_l2 = self._space.metric == "l2"
        if score_of is None:
            score_of, ascending = lambda values, chosen: values, is_l2
        longest, k = None if is_l2 else self._longest, min(k, len(self._row_ids))
        return exact.first(self._rows, vectors, k, self._row_ids, score_of, ascending, longest)
