"""A gallery on the disk or in an object store, searched by LanceDB; what it says of a question is
what `Index` says."""

import contextlib
import functools
import hashlib
import io
import itertools
import os
import shutil
import tempfile
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from halo_search.confidence import GalleryMoments
from halo_search.embeddings.arrays import as_arrays, length, take
from halo_search.embeddings.spaces import SPACES
from halo_search.errors import InputError, require
from halo_search.files.array_files import read_array, read_arrays
from halo_search.files.atomic import LOCK_FILE
from halo_search.files.environment import cache_folder
from halo_search.files.stores import (
    is_remote,
    open_file,
    plain,
    refusal,
    write_file,
    written_in,
)
from halo_search.files.written import KEY, read_sealed
from halo_search.index import exact, plan, scoring
from halo_search.index.columns import assign_ids, held_ids, refuse_missing
from halo_search.index.exact import best
from halo_search.index.index import Index
from halo_search.index.searchable import CHUNK, Searchable, alone
from halo_search.index.storage import SAVED_MEANWHILE

require("lancedb", extra="large")

import lancedb  # noqa: E402
import pyarrow as pa  # noqa: E402
from lancedb.index import BTree, IvfPq  # noqa: E402

VERSION, MANIFEST = 1, "index.json"
TABLE, FOLDER, BANK_FILE = "items", "items.lance", "questions.npy"
FEW = 50_000  # items up to which every one is compared
_MULTIPLE = 8  # of the stored dimension: LanceDB codes any other as one piece, and finds little
_SUB_VECTOR = 4  # numbers that one byte of a code stands for
_LONGEST = 1.25  # squared length of a vector whose products are compared: 1, and a hub's r²/4
_CHUNK, _QUERIES, _IDS = 16384, 256, 2000  # at once: items to vectors, asked, in a condition
_KEEP = timedelta(days=7)  # of states that the manifest names no more, for who still reads them


def _on_disk(method):
    """A method that reads the folder: an InputError if its files are gone."""

    @functools.wraps(method)
    def told(self, *args, **kwargs):
        if os.getpid() != self._process:
            raise RuntimeError("LanceDB does not survive a fork: load the index in this process")
        try:
            return method(self, *args, **kwargs)
        except (RuntimeError, ValueError) as error:
            if "Not found:" not in str(error):
                raise
            said = "its files are gone or were replaced; load the index again"
            raise InputError(f"{self.folder}: {said}") from None

    return told


class LanceIndex(Searchable):
    """A gallery in a folder, searched by LanceDB as `Index` searches one in memory, see
    docs/howto/large.md. Changes are saved by `save`. From the first change to the save nobody else
    can change the folder; who loaded it before has to load it again."""

    engine, has_moments, vector_moments = "lance", True, Searchable.moments

    def __init__(self, folder, table, description, similarity, hubs=None):
        self.folder, self.table = _place(folder), table
        self.description, self.similarity, self.hubs = description, similarity, hubs
        self._space = hubs or SPACES[description["space"]]
        self._is_product = self._space.metric == "inner_product"
        wanted = description["width"] + self._is_product  # one more makes products of distances
        self._width = -(-wanted // _MULTIPLE) * _MULTIPLE
        self._moments = self._held = None
        self.lock, self._process = threading.RLock(), os.getpid()
        self._size = 0 if table is None else table.count_rows()
        self._is_behind = False  # whether the table has states after the saved one
        self._state = None  # the table's version that the manifest named when last read or written
        self._turn = _turn_of(self.folder)  # held while there are changes that are not saved

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
        similarity, folder = scoring.resolve(similarity), _place(folder)
        written, parts = _fresh(folder), _parts(gallery_embeddings)
        first = as_arrays(next(parts, {"mean": np.empty((0, 1))}), "gallery_embeddings")
        description = plan.describe(first, similarity, side, None, None)
        if not plan.is_direct(description, similarity) or scoring.portable(similarity) is None:
            raise ValueError(
                "`similarity` must be one that needs no re-ranking, such as CSD, the cosine and "
                f"W2; received {scoring.name_of(similarity)}"
            )
        space = plan.searched_space(description, similarity, first, hubs)
        description["width"] = space.gallery(take(first, slice(0, 1))).shape[1]
        index = cls(folder, None, description, similarity, None if hubs is None else space)
        fields = {"id": pa.int64(), "vector": pa.list_(pa.float32(), index._width)}
        fields |= {name: pa.array(values).type for name, values in (columns or {}).items()}
        try:
            written.claim(FOLDER, BANK_FILE)
            index.table = _new_table(folder, pa.schema(fields))
            index._add(itertools.chain([first], parts), ids, columns)
            index.save(folder)
        except BaseException:
            written.remove(written.names)
            raise
        return index

    @classmethod
    def load(cls, folder: str | os.PathLike, similarity: Any = None) -> "LanceIndex":
        """Opens a saved index, whose items stay on the disk, as `Index.load`."""
        folder = _place(folder)
        path = f"{folder}/{MANIFEST}"
        try:
            saved = written_in(folder, MANIFEST).content if is_remote(folder) else read_sealed(path)
            if (saved.get("engine"), saved.get("version")) != (cls.engine, VERSION):
                raise InputError(f"{path}: of another version; build the index again")
            description, bank = saved["description"], None
            moments = saved["moments"]  # None of an empty index
            if moments is not None:
                with _read_here(folder, moments) as file:
                    moments = GalleryMoments(**read_arrays(file))
            if "hubs" in description:
                with _read_here(folder, BANK_FILE) as file:
                    bank = np.array(read_array(file))
            table = _connect(folder).open_table(TABLE)
            if is_behind := table.version != saved["table_version"]:
                table.checkout(saved["table_version"])
        except (OSError, ValueError, RuntimeError) as error:  # as LanceDB says what is damaged
            if isinstance(error, InputError):
                raise
            if is_remote(folder):
                raise refusal(folder, error) from error
            raise InputError(f"{folder}: cannot be read as an index: {_first(error)}") from error
        wanted = scoring.saved(path, description, similarity)
        index = cls(folder, table, description, wanted, plan.saved_space(description, bank))
        expected = 0 if moments is None else moments.count
        if len(index) != expected:
            raise InputError(f"{folder}: expected {expected:,} items, found {len(index):,}")
        index._moments, index._is_behind = moments, is_behind
        index._state = saved["table_version"]
        return index

    @alone
    def add(self, gallery_embeddings, ids=None, columns=None):
        """Adds all items or none, and returns their ids; arguments as of `build`, errors as of
        `Index.add`, and a ValueError if `columns` are not those of the index."""
        self._before_change()
        return self._add(_parts(gallery_embeddings), ids, columns)

    @alone
    def remove(self, ids):
        """Removes items, each id once; a ValueError if one is not there, then none is removed."""
        ids = held_ids(ids, self.ids)
        self._before_change()
        try:
            for start in range(0, len(ids), _IDS):
                self.table.delete(_among(ids[start : start + _IDS]))
        except (OSError, RuntimeError) as error:
            raise _not_written(self.folder, error) from error
        self._moments = self._held = None  # to be taken again of what is left
        self._size = self.table.count_rows()

    @alone
    @_on_disk
    def search(self, queries, k, where=None):
        """Like `Index.search`, restricted to rows that meet `where`, an SQL condition on the
        table's columns. Raises ValueError if the condition cannot be read."""
        queries = plan.checked_queries(self.description, self.similarity, queries)
        k = plan.checked_k(k, len(self))
        vectors = self._space.queries(queries)
        plan.warn_of_zeros(self.description, vectors, "queries")
        shape = len(vectors), k
        scores, ids = np.full(shape, np.nan, np.float32), np.full(shape, -1)
        for start in range(0, len(vectors), _QUERIES):
            rows = np.arange(start, min(start + _QUERIES, len(vectors)))
            count = min(k + exact.SPARE, len(self))
            while len(rows):
                found = self._candidates(vectors[rows], take(queries, rows), count, where)
                own, there = best(*found, count, scoring.sign(self.similarity) < 0)
                scores[rows], ids[rows] = own[:, :k], there[:, :k]
                # Of items that score as the last one, the search may have left out smaller ids.
                rows = rows[(own[:, -1] == own[:, k - 1]) & (count < len(self))]
                count = min(4 * count, len(self))
        return scores, ids

    def _candidates(self, vectors, queries, count, where):
        """Scores and ids of about the nearest items, `(queries, count)`; NaN and −1 for none."""
        probes = max(20, len(self) // 60_000)
        search = self.table.search(self._stored(vectors, of_items=False), "vector")
        search = search.distance_type("l2").limit(count).select(["id", "vector", "_distance"])
        search = search.minimum_nprobes(probes).maximum_nprobes(0 if where else probes)
        search = search.refine_factor(5 if len(self) < 1_000_000 else 10)
        try:
            found = (search.where(where, prefilter=True) if where else search).to_arrow()
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"`where` {where!r}: {_first(error)}") from error
        query = np.zeros(len(found), np.int64)
        if "query_index" in found.column_names:
            found = found.sort_by("query_index")
            query = found["query_index"].to_numpy()
        place = np.arange(len(found)) - np.searchsorted(query, query)
        rows, ids = np.full((2, len(vectors), count), -1)
        rows[query, place], ids[query, place] = np.arange(len(found)), found["id"].to_numpy()
        items = _matrix(found["vector"], self._width)[:, : vectors.shape[1]]
        made = exact.create(self._space.metric, vectors.shape[1])  # which computes as `Index`
        own = exact.flat_of(made)
        own.add(np.ascontiguousarray(items))
        values = exact.values_of(own, np.ascontiguousarray(vectors, np.float32), rows)
        values[rows < 0] = np.nan
        return self._space.scores(values, queries, self._score), ids

    @alone
    def answer_vectors(self, ids: np.ndarray) -> np.ndarray:
        """As of `Index`."""
        wanted, places = np.unique(ids, return_inverse=True)
        vectors = self._read(wanted)
        width = self.description["width"] - bool(self.hubs)
        return vectors[:, :width][places.reshape(np.shape(ids))]

    @_on_disk
    def _read(self, wanted):
        """The vectors of some items, by their sorted ids."""
        parts = [np.empty((0, self._width), np.float32)]
        for start in range(0, len(wanted), _IDS):
            some = wanted[start : start + _IDS]
            found = self.table.search().where(_among(some)).select(["id", "vector"])
            found = found.limit(len(some)).to_arrow()
            refuse_missing(np.setdiff1d(some, found["id"].to_numpy()))
            order = np.argsort(found["id"].to_numpy())
            parts.append(_matrix(found["vector"], self._width)[order])
        return np.concatenate(parts)

    @alone
    def part(self, ids: Any) -> Index:
        """An `Index` of some of the items alone: their vectors are read into memory."""
        ids = np.sort(held_ids(ids, self.ids, "among"))
        vectors = self._read(ids)[:, : self.description["width"]]
        made = exact.create(self._space.metric, vectors.shape[1])
        made.add_with_ids(np.ascontiguousarray(vectors), ids)
        return Index(dict(self.description), self.similarity, made, {}, self.hubs)

    @property
    @alone
    @_on_disk
    def ids(self):
        """The ids in the index, int64 `(len(index),)`."""
        if self._held is None:
            self._held = self.table.search().select(["id"]).to_arrow()["id"].to_numpy()
        return self._held

    def __len__(self) -> int:
        return self._size

    @alone
    def save(self, folder: str | os.PathLike) -> None:
        """Saves the index as it is now, and trains or extends LanceDB's. Into another folder, new
        or empty, files are linked or copied, and further changes go there."""
        folder = _place(folder)
        try:
            if os.path.realpath(folder) != os.path.realpath(self.folder):
                self._move(folder)
            self._before_change()
            self._save()
        except (OSError, RuntimeError) as error:
            raise _not_written(folder, error) from error
        finally:
            self._turn.release(force=True)

    def _save(self):
        """Trains or extends LanceDB's index, and names the table's state in the manifest."""
        known = {one.columns[0]: one.name for one in self.table.list_indices()}
        new = len(self)
        if "vector" in known:
            new = self.table.index_stats(known["vector"]).num_unindexed_rows
        if len(self) > FEW and new > len(self) / 2:  # most items are new
            config = IvfPq(distance_type="l2", num_sub_vectors=self._width // _SUB_VECTOR)
            self.table.create_index("vector", config=config)
            self.table.create_index("id", config=BTree())
        self._write()
        # All is saved now, so that a disk too full to merge small files is no failure. Not before,
        # since it deletes states that the manifest may still name.
        with contextlib.suppress(OSError, RuntimeError, InputError):
            state = self.table.version
            self.table.optimize(cleanup_older_than=_KEEP)
            if self.table.version != state:
                self._write()

    def _move(self, folder):
        if is_remote(folder) or is_remote(self.folder):
            raise InputError(
                f"{folder}: an index that lies in {self.folder} is saved there only; build another"
            )
        _fresh(folder).claim(FOLDER, BANK_FILE)
        shutil.copytree(self.folder / FOLDER, folder / FOLDER, copy_function=_link)
        table = _connect(folder).open_table(TABLE)
        if table.version != self.table.version:
            table.checkout(self.table.version)
            self._is_behind = True
        self._turn.release(force=True)
        self.folder, self.table, self._state = folder, table, None
        self._turn = _turn_of(folder)

    def _write(self):
        """Writes what lies beside the table, and then the manifest that names its state."""
        written, moments = written_in(self.folder, MANIFEST), None
        if len(self):
            moments = f"moments-{self.table.version}.npz"
            written.claim(moments)
            file = io.BytesIO()
            np.savez(file, **self.moments.arrays())
            write_file(f"{self.folder}/{moments}", file.getvalue())
        if self.hubs is not None:
            file = io.BytesIO()
            np.save(file, self.hubs.bank)
            write_file(f"{self.folder}/{BANK_FILE}", file.getvalue())
        saved = {"version": VERSION, "engine": self.engine, "table_version": self.table.version}
        described = scoring.described(self.description, self.similarity, True)
        written.write({**saved, "description": described, "moments": moments})
        self._state = self.table.version
        written.remove({n for n in written.names if n.startswith("moments-")} - {moments})

    @_on_disk
    def _before_change(self):
        """Takes the turn to change the folder; an InputError if another process has it, or has
        saved since this index was loaded."""
        if not self._turn.is_locked:
            try:
                self._turn.acquire()
            except Timeout:
                raise InputError(f"{self.folder}: another process changes this index") from None
            except OSError as error:
                raise _not_written(self.folder, error) from error
            named = written_in(self.folder, MANIFEST).content.get("table_version")
            if named != self._state:
                self._turn.release()
                raise InputError(f"{self.folder}: {SAVED_MEANWHILE}")
        if self._is_behind:  # what a killed process added after the saved state is left out
            try:
                self.table.restore()
            except (OSError, RuntimeError) as error:
                raise _not_written(self.folder, error) from error
            self._is_behind = False

    def _add(self, parts, ids, columns):
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
            added = np.concatenate(added)
        except BaseException as error:
            self.description["next_id"], self._moments = before
            if failed:
                raise failed[0] from None  # without LanceDB's wrapping
            if isinstance(error, (OSError, RuntimeError)):
                raise _not_written(self.folder, error) from error
            raise
        self._size, self._held = self._size + len(added), None
        return added

    def _batches(self, part, ids, columns, taken, added):
        """Yields checked rows of the table."""
        arrays = as_arrays(part, "gallery_embeddings")
        plan.check_gallery(self.description, arrays, {})
        count, own = length(arrays), {*self.table.schema.names} - {"id", "vector"}
        taken = np.concatenate([taken, *added])
        ids = assign_ids(ids, count, taken, self.description["next_id"])
        if own != set(columns) or any(len(values) != count for values in columns.values()):
            raise ValueError(f"`columns` must be {count} values of each of {own or 'none'}")
        for start in range(0, count, _CHUNK):
            rows = slice(start, start + _CHUNK)
            vectors = self._prepared(take(arrays, rows), start)
            if self._moments is not None or not len(self):
                found = GalleryMoments.of(vectors)
                self._moments = found if self._moments is None else self._moments + found
            numbers = pa.array(self._stored(vectors, of_items=True).ravel())
            beside = {name: pa.array(values[rows]) for name, values in columns.items()}
            beside["vector"] = pa.FixedSizeListArray.from_arrays(numbers, self._width)
            yield pa.RecordBatch.from_pydict({"id": ids[rows], **beside}, self.table.schema)
        added.append(ids)
        last = int(ids.max(initial=-1))
        self.description["next_id"] = max(self.description["next_id"], last + 1)

    def _stored(self, vectors, of_items):
        """Vectors as LanceDB has them: of the products' order by distances, and padded."""
        stored, width = np.zeros((len(vectors), self._width), np.float32), vectors.shape[1]
        stored[:, :width] = vectors
        if self._is_product and of_items:
            rest = _LONGEST - np.einsum("nd,nd->n", vectors, vectors)
            stored[:, width] = np.sqrt(np.maximum(rest, 0.0))
        return stored

    def _stored_vectors(self):
        """Yields the vectors of all items, a part at a time."""
        rows = self.table.search().select(["vector"])
        for batch in rows.to_batches(CHUNK):
            yield _matrix(batch["vector"], self._width)[:, : self.description["width"]]


def _parts(embeddings):
    return iter(embeddings) if hasattr(embeddings, "__next__") else iter([embeddings])


def _place(folder):
    """A path, or the address of a folder of an object store."""
    return plain(folder) if is_remote(folder) else Path(plain(folder))


def _connect(folder):
    """LanceDB in a folder. Its client of object stores reads the environment too, but asks for
    `AWS_ALLOW_HTTP` where an endpoint has no TLS."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not str(folder).startswith("s3://") or not endpoint:
        return lancedb.connect(folder)
    options = {"aws_endpoint": endpoint, "allow_http": str(endpoint.startswith("http:")).lower()}
    return lancedb.connect(folder, storage_options=options)


@contextlib.contextmanager
def _read_here(folder, name):
    """The path of a file of a folder, copied to this machine for the block where it is remote."""
    if not is_remote(folder):
        yield folder / name
        return
    with open_file(f"{folder}/{name}") as file, tempfile.TemporaryDirectory() as here:
        copy = Path(here) / name
        copy.write_bytes(file.read())
        yield copy


def _first(error):
    return str(error).splitlines()[0]


def _new_table(folder, schema):
    """An empty table in a folder; an InputError if it cannot be written."""
    try:
        return _connect(folder).create_table(TABLE, schema=schema)
    except (OSError, RuntimeError) as error:
        raise _not_written(folder, error) from error


def _not_written(folder, error):
    """The InputError of a folder that cannot be written, as of a full disk."""
    reason = getattr(error, "strerror", None) or _first(error)
    return InputError(f"{folder}: cannot write the index: {reason}")


def _among(ids):
    return f"id IN ({', '.join(map(str, ids.tolist()))})"


def _matrix(column, width):
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [chunk.flatten().to_numpy() for chunk in chunks]
    return np.concatenate([np.empty(0, np.float32), *parts]).reshape(-1, width)


def _fresh(folder):
    """The list of a folder that is new, empty, or of a build that was stopped."""
    written = written_in(folder, MANIFEST)
    written.check()
    if set(written.content) - {KEY}:
        raise InputError(f"{folder}: holds an index; choose another folder")
    written.remove(written.names)
    return written


def _turn_of(folder):
    """The lock of a folder that one index at a time changes, from whichever thread."""
    if is_remote(folder):  # writers of this machine take turns; those of others are the store's
        place = cache_folder("locks", hashlib.sha256(str(folder).encode()).hexdigest())
        place.parent.mkdir(parents=True, exist_ok=True)
    else:
        place = folder / LOCK_FILE
    return FileLock(place, timeout=0, thread_local=False)


def _link(source, target):
    try:  # a second name of a file, which LanceDB never changes; a copy on another disk
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
