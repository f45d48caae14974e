"""The items of an index: what goes into FAISS, what is kept beside it, and their ids."""

import numpy as np

from zoo import embeddings
from zoo.search import kinds, plan, units, vectors
from zoo.search.columns import Column, assign_ids, rows_of

CHUNK = 16384  # items turned into vectors at once
_KEPT = "gallery_"


class Gallery:
    """Items in a FAISS index, which only knows rows; see `Index`, which searches them.

    Args:
        description: see `zoo.search.plan.describe`.
        similarity: a layer or function.
        faiss_index: the FAISS index.
        columns: dict of arrays with one row an item: `ids` and `alive` always, `uncertainty` where
            the embedding has one, `spread` (Σσ²) or the embeddings themselves where candidates are
            ranked; and `owner`, with one row an element.
    """

    def __init__(self, description, similarity, faiss_index, columns):
        self.description, self.similarity, self.faiss = description, similarity, faiss_index
        self._known = units.ranking(similarity)
        self._space = vectors.SPACES[description["space"]]
        self._direct = plan.is_direct(description, self._known)
        self._spread = plan.adds_spread(description, self._known)
        self._columns = {name: Column(values) for name, values in columns.items()}
        self._size = int(np.count_nonzero(columns["alive"]))

    def add(self, gallery_embeddings, ids=None):
        """Adds items, a chunk at a time, so that memory beyond the index stays small.

        Args:
            gallery_embeddings: of the gallery's kind and dimension.
            ids: as in `build`; None goes on after the largest id there has been.

        Raises:
            ValueError: if they do not fit, or an id is taken. Nothing has then been added.
        """
        arrays = vectors.as_arrays(gallery_embeddings, "gallery_embeddings")
        plan.check_gallery(self.description, arrays, self._columns)
        count = vectors.length(arrays)
        ids = assign_ids(ids, count, self._ids[self._alive], self.description["next_id"])
        for start in range(0, count, CHUNK):
            chosen = slice(start, start + CHUNK)
            chunk = vectors.take(arrays, chosen)
            first = len(self._ids)
            new = {"ids": ids[chosen], "alive": np.ones(len(ids[chosen]), bool)}
            new |= self._beside(chunk, first)
            self.faiss.add(self._space.gallery(chunk))
            for name, values in new.items():
                if name in self._columns:
                    self._columns[name].append(values)
                else:
                    self._columns[name] = Column(values)
            self._size += len(new["ids"])
        if count:
            self.description["next_id"] = max(self.description["next_id"], int(ids.max()) + 1)

    def remove(self, ids):
        """Removes items.

        A flat index shrinks. In the others the rows are passed over from now on, and their memory
        comes back when the index is built again.

        Args:
            ids: of items in the index, each once.

        Raises:
            ValueError: if one is not there. Nothing has then been removed.
        """
        rows = rows_of(ids, self._ids, self._alive)
        gone = np.zeros(len(self._ids), bool)
        gone[rows] = True
        self._size -= len(rows)
        if self.description["kind"] != "flat":
            self._columns["alive"].set(gone, False)
            return
        owners = self._columns.pop("owner", None)
        faiss_rows = gone if owners is None else gone[owners.values]
        kinds.remove(self.faiss, faiss_rows)
        for column in self._columns.values():
            column.keep(~gone)
        if owners is not None:
            owners.keep(~faiss_rows)
            renumbered = np.cumsum(~gone) - 1
            self._columns["owner"] = Column(renumbered[owners.values])

    def __len__(self):
        return self._size

    @property
    def ids(self):
        """The ids in the index, int64 `(len(index),)`, in the order of adding."""
        return self._ids[self._alive]

    @property
    def _ids(self):
        return self._columns["ids"].values

    @property
    def _alive(self):
        return self._columns["alive"].values

    def _beside(self, chunk, first):
        """The columns of new items that this index needs beside FAISS."""
        new = {}
        if self.description["embedding"] != units.POINT:
            measure = self.description["uncertainty_measure"]
            new["uncertainty"] = np.asarray(embeddings.uncertainty(chunk, measure))
        if self._space.name == "elements":
            new["owner"] = first + vectors.element_owners(chunk)
        if self._spread:
            new["spread"] = vectors.total_variance(chunk)
        elif not self._direct:
            new |= {_KEPT + key: value for key, value in chunk.items()}
        return new

    def _mask(self, max_uncertainty):
        """The rows of FAISS that may be found, or None for all."""
        mask = None if self._size == len(self._ids) else self._alive
        if max_uncertainty is not None:
            if "uncertainty" not in self._columns:
                raise ValueError("`max_uncertainty` must be None: points have no uncertainty")
            sure = self._columns["uncertainty"].values <= max_uncertainty
            mask = sure if mask is None else sure & mask
        if mask is None or "owner" not in self._columns:
            return mask
        return mask[self._columns["owner"].values]

    @property
    def _embeddings(self):
        """The gallery itself, where candidates are ranked by it."""
        return {
            name.removeprefix(_KEPT): column.values
            for name, column in self._columns.items()
            if name.startswith(_KEPT)
        }
