"""The items of an index: what goes into FAISS, and what is kept beside it."""

import numpy as np

from zoo import embeddings
from zoo.confidence import GalleryMoments
from zoo.embeddings import POINT, SET
from zoo.embeddings.arrays import (
    as_arrays,
    element_owners,
    gaussian_uncertainty,
    length,
    take,
    total_variance,
    unit,
)
from zoo.embeddings.spaces import SPACES
from zoo.search import flat, gallery_scores, plan, scoring
from zoo.search.by_vectors import ByVectors, pair_values
from zoo.search.columns import Column, assign_ids, held_ids, refuse_missing
from zoo.search.rerank import Reranker, by_query
from zoo.search.sharing import SharedLock, changes, reads

CHUNK = 16384  # items turned into vectors at once


class Gallery(ByVectors):
    """Items in a FAISS index, see `Index`, which searches them. `columns` are arrays with one row
    an item, see `plan.columns`; `hubs` a `CorrectedSpace` or None."""

    def __init__(self, description, similarity, faiss_index, columns, hubs=None):
        self.description, self.similarity, self.faiss = description, similarity, faiss_index
        self._rows = flat.rows(faiss_index)
        self.hubs, self._space = hubs, hubs or SPACES[description["space"]]
        self._direct = plan.is_direct(description, similarity)
        self._spread = plan.adds_spread(description, similarity)
        self._columns = {name: Column(values) for name, values in columns.items()}
        self._reranker = Reranker(similarity, description["side"])
        self._moments = self._length_of_longest = None
        self._lock = SharedLock()
        self.reading, self.writing = self._lock.reading, self._lock.writing
        if self.has_moments:
            self._scored_by(similarity)
        self._changed()

    @changes
    def add(self, gallery_embeddings, ids=None):
        """Adds items, and returns their ids, int64 `(items,)`.

        Args:
            gallery_embeddings: of the gallery's kind and dimension.
            ids: as in `build`; None continues after the largest id so far.

        Raises:
            ValueError: if they do not fit, an id is taken, or an item's variance or vector is too
                large for float32. Nothing has then been added.
        """
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
            self._take_back(*before)
            raise
        self._changed()
        if count:
            self.description["next_id"] = max(self.description["next_id"], int(ids.max()) + 1)
        return ids

    def _add_chunk(self, chunk, ids, first):
        """Adds some items. All checks come before FAISS has a row of them."""
        with np.errstate(over="ignore", invalid="ignore"):  # which `check_finite` then refuses
            beside, vectors = self._beside(chunk, ids), self._space.gallery(chunk)
        row_ids = ids
        if self.description["embedding"] == SET:
            row_ids = ids[element_owners(chunk)]
        plan.check_finite(chunk, beside, vectors, first)
        plan.warn_of_zeros(self.description, vectors, "gallery_embeddings", first)
        added = None
        if self._moments is not None:
            added = GalleryMoments.of(self._moment_space.gallery(chunk))
        for name, values in beside.items():
            if name in self._columns:
                self._columns[name].append(values)
            else:
                self._columns[name] = Column(values)
        self.faiss.add_with_ids(vectors, row_ids)
        if self._length_of_longest is not None:
            self._length_of_longest = max(self._length_of_longest, _longest(vectors))
        if added is not None:
            self._moments += added

    def _take_back(self, rows, items, moments):
        """Restores the index as it was before an `add` that failed."""
        flat.take_back(self.faiss, rows)
        for column in self._columns.values():
            column.cut(items)
        self._moments = moments
        self._changed()

    @changes
    def remove(self, ids):
        """Removes items, each id once; a ValueError if one is not there, then none is."""
        ids = held_ids(ids, self.ids)
        gone = np.isin(self._ids, ids)
        flat.remove(self.faiss, ids)
        for column in self._columns.values():
            column.keep(~gone)
        self._moments = None  # to be taken again of what is left
        self._changed()

    def reserve(self, items):
        """Makes room for further items at once, so that adding in parts never copies the index."""
        flat.reserve(self._rows, items * max(1, self.faiss.ntotal // max(1, len(self._ids))))

    def __len__(self):
        return len(self._ids)

    @property
    @reads
    def ids(self):
        """The ids in the index, int64 `(len(index),)`, in the order of adding."""
        return np.array(self._ids)

    @property
    def has_moments(self):
        """Whether a score's mean and variance over the gallery may follow from its `moments`."""
        return self._direct or self._spread

    @property
    @reads
    def vector_moments(self):
        """The `zoo.confidence.GalleryMoments` of `item_vectors`, or None without a space."""
        if self.has_moments:
            return self.moments
        if self.own_space is None:
            return None
        if self._vector_moments is None:
            places = np.arange(len(self))
            parts = (places[start : start + CHUNK] for start in range(0, len(self), CHUNK))
            self._vector_moments = gallery_scores.moments_of(map(self.item_vectors, parts))
        return self._vector_moments

    @reads
    def part(self, ids):
        """An index of some of the items alone, in memory, in the order of this one; a ValueError if
        an id is not here, or given twice, or none is."""
        places = np.sort(self.places(held_ids(ids, self._ids, "among")))
        if not len(places):
            raise ValueError("`among` must name at least one item; received none")
        is_set = self.description["embedding"] == SET
        rows = np.flatnonzero(np.isin(self._owner, places)) if is_set else places
        made = flat.create(self._space.metric, self.faiss.d)
        made.add_with_ids(flat.vectors(self._rows)[rows], np.array(self._row_ids[rows]))
        columns = {name: column.values[places] for name, column in self._columns.items()}
        part = type(self)(dict(self.description), self.similarity, made, columns, self.hubs)
        part._reranker = self._reranker  # which is compiled
        return part

    @reads
    def answer_vectors(self, ids):
        """The vectors of answers in `own_space`, `(queries, k, dim')` of `(queries, k)` ids."""
        places = self.places(ids)
        refuse_missing(np.asarray(ids)[places == flat.NONE])
        return self.item_vectors(places.ravel()).reshape(*places.shape, -1)

    @reads
    def places(self, ids):
        """The row of the columns of each id; −1 where the index does not hold it."""
        held = self._ids
        if self._order is None:
            self._order = np.argsort(held, kind="stable")
        first = np.searchsorted(held, ids, sorter=self._order)
        found = self._order[np.minimum(first, len(held) - 1)]
        return np.where(held[found] == ids, found, flat.NONE)

    @reads
    def item_vectors(self, places):
        """The vectors of items in `own_space`, float32; of sets the means of their elements. By
        rows of the columns, `(items,)`. What corrects hubs is no part of them."""
        if not self.has_moments:
            return self.own_space.item_vectors(take(self._embeddings, places))
        found = flat.vectors(self._rows)[places]
        if self._spread:
            spread = self._columns["spread"].values[places]
            found = np.concatenate([found, np.sqrt(spread)[:, None]], axis=1)
        return found if self.hubs is None else found[:, :-1]

    @reads
    def over_the_gallery(self, queries):
        """Mean and variance of the queries' scores over all items."""
        if self.has_moments:
            return super().over_the_gallery(queries)
        more = self.similarity, self.description["side"], queries, self._embeddings
        return gallery_scores.scan_of_embeddings(*more)

    @reads
    def pair_scores(self, queries, items, rows, left_out=None):
        """As of `ByVectors`, also where candidates are ranked by the similarity itself."""
        if self.has_moments:
            scores = super().pair_scores(queries, items, rows, left_out)
        else:
            sign = scoring.sign(self.similarity)
            scores = sign * self._reranker.scores(queries, items, rows).astype(np.float64)
        if not self._direct and int(self.description["candidates"]) < self.faiss.ntotal:
            found = self._within_candidates(queries, items, rows)
            scores = np.where(found, scores, -np.inf)
        return np.where(rows < 0, np.nan, scores)

    @reads
    def count_at_least(self, queries, scores):
        """How many of all items score at least as high, `(Q,)`, for each query, int64 `(Q,)`."""
        if self.has_moments:
            return super().count_at_least(queries, scores)
        more = self.similarity, self.description["side"], queries, self._embeddings
        return gallery_scores.count_of_embeddings(*more, np.asarray(scores, np.float64))

    def _within_candidates(self, queries, items, rows):
        """Whether each pair's item is nearer than the last candidate of the query or an element."""
        asked, own = self._space.queries(queries), self._space.gallery(items)
        last = self._nearest(asked, int(self.description["candidates"]), None)[0][:, -1]
        if self.description["embedding"] != SET:
            values = pair_values(self._space.metric, asked, own, rows)
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

    @property
    def _moment_space(self):
        return SPACES["csd"] if self._spread else self._space

    def _stored_vectors(self):
        """Yields the vectors of all items in the space of their scores, a part at a time."""
        whole = flat.vectors(self._rows)
        for start in range(0, len(whole), gallery_scores.CHUNK):
            part = whole[start : start + gallery_scores.CHUNK]
            if self._spread:  # CSD's space, of means and the variances beside them
                spread = self._columns["spread"].values[start : start + len(part)]
                part = np.concatenate([part, np.sqrt(spread)[:, None]], axis=1)
            yield part

    @property
    def _ids(self):
        """The id of every row of the columns."""
        if self.description["embedding"] != SET:
            return self._row_ids
        return self._columns["ids"].values if "ids" in self._columns else np.empty(0, np.int64)

    def _changed(self):
        """Looks at FAISS' ids again; asking for them in every search would slow it."""
        self._row_ids = flat.row_ids(self.faiss)
        self._owners = self._order = self._vector_moments = None

    def _longest(self):
        """The length of the longest vector, or more."""
        if self._length_of_longest is None:
            whole = flat.vectors(self._rows)
            parts = (whole[n : n + CHUNK] for n in range(0, len(whole), CHUNK))
            self._length_of_longest = max(map(_longest, parts), default=0.0)
        return self._length_of_longest

    @property
    def _owner(self):
        """The item, as a row of the columns, of every row of FAISS; of sets only."""
        if self._owners is None:
            self._owners = self.places(self._row_ids)
        return self._owners

    def _beside(self, chunk, ids):
        """The columns of new items."""
        new = {}
        if self.description["embedding"] != POINT:
            measure = self.description["uncertainty_measure"]
            new["uncertainty"] = uncertainty_of(chunk, measure)
        if self.description["embedding"] == SET:
            new["ids"] = ids
        if self._spread:
            new["spread"] = total_variance(chunk)
        elif not self._direct:
            new |= {plan.KEPT + key: value for key, value in chunk.items()}
        return new

    def _mask(self, max_uncertainty):
        """The rows of FAISS that may be found, or None for all."""
        if max_uncertainty is None:
            return None
        if "uncertainty" not in self._columns:
            raise ValueError("`max_uncertainty` must be None: points have no uncertainty")
        sure = self._columns["uncertainty"].values <= max_uncertainty
        return sure[self._owner] if self.description["embedding"] == SET else sure

    @property
    def _embeddings(self):
        """The gallery itself, where candidates are ranked by it."""
        return {
            name.removeprefix(plan.KEPT): column.values
            for name, column in self._columns.items()
            if name.startswith(plan.KEPT)
        }


def _longest(vectors):
    return float(np.sqrt(np.einsum("nd,nd->n", vectors, vectors).max(initial=0.0)))


def uncertainty_of(chunk, measure):
    if "log_variance" in chunk and measure in (None, *embeddings.GAUSSIAN_UNCERTAINTIES):
        return gaussian_uncertainty(chunk, measure)  # without Keras
    return np.asarray(embeddings.uncertainty(chunk, measure))
