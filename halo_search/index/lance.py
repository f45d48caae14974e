"""A gallery on the disk or in an object store, searched by LanceDB; what it says of a question is
what `Index` says."""

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np

from halo_search.confidence import GalleryMoments
from halo_search.embeddings.arrays import as_arrays, length, take
from halo_search.embeddings.spaces import SPACES
from halo_search.errors import InputError, require
from halo_search.index import exact, plan, scoring
from halo_search.index.columns import assign_ids, held_ids
from halo_search.index.exact import best
from halo_search.index.index import Index
from halo_search.index.lance_store import (
    BANK_FILE,
    ENGINE,
    FOLDER,
    MANIFEST,
    LanceStore,
    claimed,
    not_written,
    place,
)
from halo_search.index.lance_vectors import TableVectors, among, portions
from halo_search.index.searchable import Searchable, alone

pa = require("pyarrow", extra="large")

_CHUNK, _QUERIES = 16384, 256  # at once: items to vectors, asked
_HISTORY = timedelta(days=7)  # of states that the manifest names no more, for who still reads them


class LanceIndex(Searchable):
    """A gallery in a folder, searched by LanceDB as `Index` searches one in memory, see
    docs/howto/large.md. Changes are saved by `save`. From the first change to the save nobody else
    can change the folder; who loaded it before has to load it again.

    Attributes:
        store: the `LanceStore`, with the table and its folder.
        description: what the index is, JSON values.
        similarity: what scores.
        hubs: the `CorrectedSpace`, or None.
    """

    engine, has_moments, vector_moments = ENGINE, True, Searchable.moments

    def __init__(self, store, description, similarity, hubs=None):
        self.store, self.description = store, description
        self.similarity, self.hubs = similarity, hubs
        self._space = hubs or SPACES[description["space"]]
        self._vectors = TableVectors(self._space, description["width"])
        self._moments = self._all_ids = None  # of the table as it is, read when first needed
        self.lock = threading.RLock()
        self._size = store.table.count_rows()

    @classmethod
    def build(
        cls,
        folder,
        gallery_embeddings,
        similarity,
        ids=None,
        side="images",
        hubs=None,
        columns=None,
    ):
        """An index saved in `folder`, new or empty. As `Index.build`; embeddings may be an iterator
        of parts, and `columns` are names to one value an item each, for `where`."""
        similarity, folder = scoring.resolve(similarity), place(folder)
        written, parts = claimed(folder), _parts(gallery_embeddings)
        first = as_arrays(next(parts, {"mean": np.empty((0, 1))}), "gallery_embeddings")
        description = plan.describe(first, similarity, side, None, None)
        if not plan.is_direct(description, similarity) or scoring.portable(similarity) is None:
            raise ValueError(
                "`similarity` must be one that needs no re-ranking, such as CSD, the cosine and "
                f"W2; received {scoring.name_of(similarity)}"
            )
        space = plan.searched_space(description, similarity, first, hubs)
        description["width"] = space.gallery(take(first, slice(0, 1))).shape[1]
        fields = {"id": pa.int64(), "vector": TableVectors(space, description["width"]).type}
        fields |= {name: pa.array(values).type for name, values in (columns or {}).items()}
        try:
            written.claim(FOLDER, BANK_FILE)
            store = LanceStore.create(folder, pa.schema(fields))
            index = cls(store, description, similarity, None if hubs is None else space)
            index._add(itertools.chain([first], parts), ids, columns)
            index.save(folder)
        except BaseException:
            written.remove(written.names)
            raise
        return index

    @classmethod
    def load(cls, folder: str | os.PathLike, similarity: Any = None) -> "LanceIndex":
        """Opens a saved index, whose items stay on the disk, as `Index.load`."""
        folder = place(folder)
        store, description, moments, bank = LanceStore.open(folder)
        similarity = scoring.saved(f"{folder}/{MANIFEST}", description, similarity)
        index = cls(store, description, similarity, plan.saved_space(description, bank))
        index._moments = None if moments is None else GalleryMoments(**moments)
        expected = 0 if moments is None else index._moments.count
        if len(index) != expected:
            raise InputError(f"{folder}: expected {expected:,} items, found {len(index):,}")
        return index

    @property
    def folder(self):
        """A path, or the address of a folder of an object store."""
        return self.store.folder

    @property
    def table(self):
        """LanceDB's."""
        return self.store.table

    @alone
    def add(self, gallery_embeddings, ids=None, columns=None):
        """Adds all items or none, and returns their ids; arguments as of `build`, errors as of
        `Index.add`, and a ValueError if `columns` are not those of the index."""
        self.store.begin_change()
        return self._add(_parts(gallery_embeddings), ids, columns)

    @alone
    def remove(self, ids):
        """Removes items, each id once; a ValueError if one is not there, then none is removed."""
        ids = held_ids(ids, self.ids)
        self.store.begin_change()
        with self.store.writing():
            for some in portions(ids):
                self.table.delete(among(some))
        self._moments = self._all_ids = None  # of other items now
        self._size = self.table.count_rows()

    @alone
    def search(self, queries, k, where=None):
        """Like `Index.search`, restricted to rows that meet `where`, an SQL condition on the
        table's columns. Raises ValueError if the condition cannot be read."""
        queries = plan.checked_queries(self.description, self.similarity, queries)
        k = plan.checked_k(k, len(self))
        vectors = self._space.queries(queries)
        plan.warn_of_zeros(self.description, vectors, "queries")
        shape = len(vectors), k
        scores, ids = np.full(shape, np.nan, np.float32), np.full(shape, -1)
        with self.store.reading():
            for start in range(0, len(vectors), _QUERIES):
                rows = np.arange(start, min(start + _QUERIES, len(vectors)))
                self._search_some(vectors, queries, rows, where, scores, ids)
        return scores, ids

    def _search_some(self, vectors, queries, rows, where, scores, ids):
        """Writes the best k of some queries into rows of `scores` and `ids` `(Q, k)`. More and more
        items are compared, until no tie at the end is cut: ids break ties."""
        k = scores.shape[1]
        count = min(k + exact.SPARE, len(self))
        while len(rows):
            candidates = self._candidates(vectors[rows], take(queries, rows), count, where)
            ordered, places = best(*candidates, count, scoring.sign(self.similarity) < 0)
            scores[rows], ids[rows] = ordered[:, :k], places[:, :k]
            is_cut = (ordered[:, -1] == ordered[:, k - 1]) & (count < len(self))
            rows = rows[is_cut]
            count = min(4 * count, len(self))

    def _candidates(self, vectors, queries, count, where):
        """Scores and ids of about the nearest items, `(queries, count)`; NaN and −1 for none."""
        nearest = self._vectors.nearest(self.table, len(self), vectors, count, where)
        item_vectors, rows, ids = nearest
        values = self._exact_values(vectors, item_vectors, rows)
        return self._space.scores(values, queries, self._score), ids

    def _exact_values(self, vectors, item_vectors, rows):
        """What FAISS' value is of queries and of rows `(Q, count)` of items, as `Index` computes
        it; NaN for row −1."""
        index = exact.create(self._space.metric, vectors.shape[1])  # owns the flat one
        flat = exact.flat_of(index)
        flat.add(np.ascontiguousarray(item_vectors))
        values = exact.values_of(flat, np.ascontiguousarray(vectors, np.float32), rows)
        values[rows < 0] = np.nan
        return values

    @alone
    def answer_vectors(self, ids: np.ndarray) -> np.ndarray:
        """As of `Index`."""
        wanted, places = np.unique(ids, return_inverse=True)
        vectors = self._read(wanted)
        width = self.description["width"] - bool(self.hubs)
        return vectors[:, :width][places.reshape(np.shape(ids))]

    def _read(self, wanted):
        """The vectors of some items, `(items, dim)`, by their sorted ids."""
        with self.store.reading():
            return self._vectors.by_ids(self.table, wanted)

    @alone
    def part(self, ids: Any) -> Index:
        """An `Index` of some of the items alone: their vectors are read into memory."""
        ids = np.sort(held_ids(ids, self.ids, "among"))
        vectors = self._read(ids)
        made = exact.create(self._space.metric, vectors.shape[1])
        made.add_with_ids(np.ascontiguousarray(vectors), ids)
        return Index(dict(self.description), self.similarity, made, {}, self.hubs)

    @property
    @alone
    def ids(self):
        """The ids in the index, int64 `(len(index),)`."""
        if self._all_ids is None:
            with self.store.reading():
                self._all_ids = self.table.search().select(["id"]).to_arrow()["id"].to_numpy()
        return self._all_ids

    def __len__(self) -> int:
        return self._size

    def save(self, folder: str | os.PathLike) -> None:
        """Saves the index as it is now, and trains or extends LanceDB's. Into another folder, new
        or empty, files are linked or copied, and further changes go there."""
        with self.saving(folder):
            pass

    @contextlib.contextmanager
    def saving(self, folder: str | os.PathLike) -> Iterator[None]:
        """Saves as `save`, for a block that writes what lies beside. Where either fails, the index
        stays where it was, with the changes that are not saved yet."""
        with self.lock:
            before, had_changes = self.store, self.store.is_changing
            try:
                self._save_in(place(folder))
                yield
            except BaseException:
                if self.store is not before or not had_changes:
                    self.store.end_change()
                self.store = before
                raise
            for store in (before, self.store):
                store.end_change()

    def _save_in(self, folder):
        """Saves into a folder, where the index then lies; a new one is emptied where that fails."""
        before = self.store
        try:
            if os.path.realpath(folder) != os.path.realpath(self.folder):
                self.store = before.moved(folder)
            self.store.begin_change()
            self._vectors.train(self.table)
            self._commit()
            # All is saved now, so that a disk too full to merge small files is no failure. Not
            # before, since it deletes states that the manifest may still name.
            with contextlib.suppress(OSError, RuntimeError, InputError):
                state = self.table.version
                self.table.optimize(cleanup_older_than=_HISTORY)
                if self.table.version != state:
                    self._commit()
        except BaseException as error:
            if self.store is not before:
                self.store.discard()
            if isinstance(error, (OSError, RuntimeError)):
                raise not_written(folder, error) from error
            raise

    def _commit(self):
        """Writes what lies beside the table, and names the state of the table in the manifest."""
        description = scoring.described(self.description, self.similarity, True)
        moments = self.moments.arrays() if len(self) else None
        self.store.commit(description, moments, None if self.hubs is None else self.hubs.bank)

    def _add(self, parts, ids, columns):
        """Adds the items of all parts or none, and returns their ids; `ids` are of one part, or
        None."""
        before = self.description["next_id"], self._moments
        added, failed = [np.empty(0, np.int64)], []
        taken = added[0] if ids is None else self.ids  # here: LanceDB calls from another thread

        def batches():
            try:
                for part in parts:
                    yield from self._batches(part, ids, columns or {}, taken, added)
            except BaseException as error:
                failed.append(error)
                raise

        try:
            self.table.add(pa.RecordBatchReader.from_batches(self.table.schema, batches()))
        except BaseException as error:
            self.description["next_id"], self._moments = before
            if failed:
                raise failed[0] from None  # without LanceDB's wrapping
            if isinstance(error, (OSError, RuntimeError)):
                raise not_written(self.folder, error) from error
            raise
        added = np.concatenate(added)
        self._size, self._all_ids = self._size + len(added), None
        return added

    def _batches(self, part, ids, columns, taken, added):
        """Yields the checked items of a part as rows of the table, and appends their ids to
        `added`; `taken` are ids that the index has."""
        arrays = as_arrays(part, "gallery_embeddings")
        plan.check_gallery(self.description, arrays, {})
        count, expected = length(arrays), {*self.table.schema.names} - {"id", "vector"}
        taken = np.concatenate([taken, *added])
        ids = assign_ids(ids, count, taken, self.description["next_id"])
        if expected != set(columns) or any(len(values) != count for values in columns.values()):
            raise ValueError(f"`columns` must be {count} values of each of {expected or 'none'}")
        for start in range(0, count, _CHUNK):
            rows = slice(start, start + _CHUNK)
            vectors = self._prepared(take(arrays, rows), start)
            if self._moments is not None or not len(self):
                moments = GalleryMoments.of(vectors)
                self._moments = moments if self._moments is None else self._moments + moments
            batch = {"id": ids[rows], "vector": self._vectors.of_items(vectors)}
            batch |= {name: pa.array(values[rows]) for name, values in columns.items()}
            yield pa.RecordBatch.from_pydict(batch, self.table.schema)
        added.append(ids)
        last = int(ids.max(initial=-1))
        self.description["next_id"] = max(self.description["next_id"], last + 1)

    def _stored_vectors(self):
        """Yields the vectors of all items, a part at a time."""
        return self._vectors.every(self.table)


def _parts(embeddings):
    """An iterator of embeddings, or one embedding, as an iterator."""
    return iter(embeddings) if hasattr(embeddings, "__next__") else iter([embeddings])
