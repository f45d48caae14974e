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
)
from zoo.embeddings.spaces import SPACES, straight_line
from zoo.search import gallery_scores, kinds, plan, scoring
from zoo.search.columns import Column, assign_ids, held_ids, refuse_missing
from zoo.search.pair_scores import PairScores
from zoo.search.sharing import SharedLock, changes, reads

CHUNK = 16384  # items turned into vectors at once


class Gallery(PairScores):
    """Items in a FAISS index, which holds their vectors and ids; see `Index`, which searches them.

    Args:
        description: see `zoo.search.plan.describe`.
        similarity: a layer or a `scoring.Quantity`.
        faiss_index: a `faiss.IndexIDMap`. Each row has the id of its item; of a removed row that
            FAISS cannot take out it is −1.
        columns: dict of arrays, see `plan.columns`, with one row an item: a row of FAISS, of sets
            one an entry of `ids`.
        scratch: a `zoo.search.columns.Scratch` for new columns, or None for memory.
        hubs: a `zoo.embeddings.csls.CorrectedSpace`, or None.
    """

    def __init__(self, description, similarity, faiss_index, columns, scratch=None, hubs=None):
        self.description, self.similarity, self.faiss = description, similarity, faiss_index
        self._rows = kinds.rows(faiss_index)
        self.hubs, self._space = hubs, hubs or SPACES[description["space"]]
        self._direct = plan.is_direct(description, similarity)
        self._spread = plan.adds_spread(description, similarity)
        self._columns = {name: Column(values) for name, values in columns.items()}
        self._moments, self._scratch, self.is_mapped = None, scratch, False
        self._length_of_longest = None
        self._lock = SharedLock()
        self.reading, self.writing = self._lock.reading, self._lock.writing
        if self.has_moments:
            self._score = similarity.scorer()
            self._line = straight_line(self._score)
        self._changed()

    @changes
    def add(self, gallery_embeddings, ids=None):
        """Adds items, a chunk at a time, so that memory beyond the index stays small.

        Args:
            gallery_embeddings: of the gallery's kind and dimension.
            ids: as in `build`; None continues after the largest id so far.

        Returns:
            The ids of the new items, int64 `(items,)`.

        Raises:
            ValueError: if they do not fit, an id is taken, or an item's variance or vector is too
                large for float32. Nothing has then been added.
        """
        self._check_writable()
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
            held = self._moment_space.gallery(chunk)
            added = GalleryMoments.of(
                kinds.held_vectors(self.description["kind"], self._rows, held)
            )
        for name, values in beside.items():
            if name in self._columns:
                self._columns[name].append(values)
            else:
                self._columns[name] = self._new_column(name, values)
        self.faiss.add_with_ids(vectors, row_ids)
        if self._length_of_longest is not None:
            self._length_of_longest = max(self._length_of_longest, _longest(vectors))
        if added is not None:
            self._moments += added

    def _take_back(self, rows, items, moments):
        """Restores the index as it was before an `add` that failed."""
        kinds.take_back(self.description["kind"], self.faiss, rows)
        passed_over = self.description["embedding"] != SET  # each with its row in the columns
        items = max(items, self.faiss.ntotal) if passed_over else items
        for column in self._columns.values():
            column.cut(items)
        self._moments = moments
        self._changed()

    @changes
    def remove(self, ids):
        """Removes items of the index, each id once; a ValueError if one is not there, then none is.

        A flat index shrinks. FAISS cannot take rows out of a graph, nor renumber those of IVF: they
        are passed over from now on, and their memory comes back when the index is built again.
        """
        self._check_writable()
        ids = held_ids(ids, self.ids)
        gone, is_flat = np.isin(self._ids, ids), self.description["kind"] == "flat"
        if is_flat:
            kinds.remove(self.faiss, ids)
        else:
            self._row_ids[np.isin(self._row_ids, ids)] = kinds.REMOVED
        if is_flat or self.description["embedding"] == SET:
            for column in self._columns.values():
                column.keep(~gone)
        self._moments = None  # to be taken again of what is left
        self._changed()

    def __len__(self):
        return self._size

    @property
    @reads
    def ids(self):
        """The ids in the index, int64 `(len(index),)`, in the order of adding."""
        return self._ids[self._ids != kinds.REMOVED]

    @property
    def has_moments(self):
        """Whether a score's mean and variance over the gallery may follow from its `moments`."""
        return self._direct or self._spread

    @property
    @reads
    def moments(self):
        """The `zoo.confidence.GalleryMoments` of the items, in the space of their scores.

        They are computed when they are first asked for, go on with `add`, are computed again after
        `remove`, and are saved with the index. Of IVF-PQ they are those of its codes.

        Raises:
            ValueError: of sets and of similarities that only rank candidates: their scores do not
                follow from moments; or if the index is empty.
        """
        if not self.has_moments:
            raise ValueError("this similarity's scores over a gallery do not follow from moments")
        if not self._size:
            raise ValueError("the index is empty: it has no moments")
        if self._moments is None:
            self._moments = gallery_scores.moments_of(self._stored_vectors())
        return self._moments

    @property
    @reads
    def vector_moments(self):
        """The `zoo.confidence.GalleryMoments` of `item_vectors`, or None without a space."""
        if self.has_moments:
            return self.moments
        if self.own_space is None:
            return None
        if self._vector_moments is None:
            there = np.flatnonzero(self._ids != kinds.REMOVED)
            parts = (there[start : start + CHUNK] for start in range(0, len(there), CHUNK))
            self._vector_moments = gallery_scores.moments_of(map(self.item_vectors, parts))
        return self._vector_moments

    @property
    @reads
    def centre(self):
        """The mean of the items' vectors in the space of `item_vectors`, `(dim',)` float64."""
        centre = self.vector_moments.mean[:-1]
        return centre if self.hubs is None else centre[:-1]

    @reads
    def vector_sample(self, count, seed=0):
        """The vectors of at most `count` items in `own_space`, drawn at random."""
        there = np.flatnonzero(self._ids != kinds.REMOVED)
        return self.item_vectors(np.random.default_rng(seed).permutation(there)[:count])

    @reads
    def answer_vectors(self, ids):
        """The vectors of answers in `own_space`, `(queries, k, dim')` of `(queries, k)` ids, all of
        which the index holds.
        """
        places = self.places(ids)
        refuse_missing(np.asarray(ids)[places == kinds.REMOVED])
        return self.item_vectors(places.ravel()).reshape(*places.shape, -1)

    @reads
    def places(self, ids):
        """The row of the columns of each id; `REMOVED` where the index does not hold it."""
        held = self._ids
        if self._order is None:
            self._order = np.argsort(held, kind="stable")
        first = np.searchsorted(held, ids, sorter=self._order)
        found = self._order[np.minimum(first, len(held) - 1)]
        return np.where((held[found] == ids) & (ids != kinds.REMOVED), found, kinds.REMOVED)

    @property
    def own_space(self):
        """The space in which the similarity itself is searched, or None."""
        name = self.similarity.space_for(self.description["embedding"])
        return None if name is None else SPACES[name]

    @reads
    def item_vectors(self, places):
        """The vectors of items in `own_space`, float32; of sets the means of their elements.

        By rows of the columns, `(items,)`, see `places`. What corrects hubs is no part of them.
        """
        if not self.has_moments:
            return self.own_space.item_vectors(take(self._embeddings, places))
        found = kinds.reconstruct(self.description["kind"], self._rows, places)
        if self._spread:
            spread = self._columns["spread"].values[places]
            found = np.concatenate([found, np.sqrt(spread)[:, None]], axis=1)
        return found if self.hubs is None else found[:, :-1]

    @reads
    def over_the_gallery(self, queries):
        """Mean and variance of the queries' scores over all items."""
        if not self.has_moments:
            there = self._ids != kinds.REMOVED
            return gallery_scores.scan_of_embeddings(
                self.similarity, self.description["side"], queries, self._embeddings, there
            )
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

    @property
    def _moment_space(self):
        return SPACES["csd"] if self._spread else self._space

    def _stored_vectors(self):
        """Yields the vectors of all items in the space of their scores, a part at a time."""
        kind = self.description["kind"]
        parts = gallery_scores.stored_vectors(kind, self._rows, self._row_ids)
        return self._with_spread(parts) if self._spread else parts

    def _with_spread(self, parts):
        """The vectors of CSD's space, out of means that were found and the variances beside."""
        spread = self._columns["spread"].values[self._row_ids != kinds.REMOVED]
        start = 0
        for part in parts:
            own = np.sqrt(spread[start : start + len(part)])[:, None]
            yield np.concatenate([part, own], axis=1)
            start += len(part)

    @property
    def _ids(self):
        """The id of every row of the columns."""
        if self.description["embedding"] != SET:
            return self._row_ids
        return self._columns["ids"].values if "ids" in self._columns else np.empty(0, np.int64)

    def _check_writable(self):
        if self.is_mapped:
            raise ValueError("this index was loaded with `mapped=True`, and can only be searched")

    def _new_column(self, name, values):
        return Column(values) if self._scratch is None else self._scratch.column(name, values)

    def _changed(self):
        """Looks at FAISS' ids again; asking for them in every search would slow it."""
        self._row_ids = kinds.row_ids(self.faiss)
        self._has_removed = bool((self._row_ids == kinds.REMOVED).any())
        self._size = int(np.count_nonzero(self._ids != kinds.REMOVED))
        self._owners = self._order = self._vector_moments = None

    def _longest(self):
        """The length of the longest vector, or more, of an index that holds vectors."""
        flat = kinds.flat_part(self.description["kind"], self._rows)
        if self._length_of_longest is None and flat is not None:
            parts = gallery_scores.stored_vectors("flat", flat, self._row_ids)
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
            new["uncertainty"] = _uncertainty(chunk, measure)
        if self.description["embedding"] == SET:
            new["ids"] = ids
        if self._spread:
            new["spread"] = total_variance(chunk)
        elif not self._direct:
            new |= {plan.KEPT + key: value for key, value in chunk.items()}
        return new

    def _mask(self, max_uncertainty):
        """The rows of FAISS that may be found, or None for all."""
        mask = self._row_ids != kinds.REMOVED if self._has_removed else None
        if max_uncertainty is None:
            return mask
        if "uncertainty" not in self._columns:
            raise ValueError("`max_uncertainty` must be None: points have no uncertainty")
        sure = self._columns["uncertainty"].values <= max_uncertainty
        if self.description["embedding"] == SET:
            sure = sure[self._owner]
        return sure if mask is None else sure & mask

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


def _uncertainty(chunk, measure):
    if "log_variance" in chunk and measure in (None, *embeddings.GAUSSIAN_UNCERTAINTIES):
        return gaussian_uncertainty(chunk, measure)  # without Keras
    return np.asarray(embeddings.uncertainty(chunk, measure))
