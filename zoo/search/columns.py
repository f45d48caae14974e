"""What an index keeps beside FAISS: columns with one row an item; and the ids of new items."""

import dataclasses
import os
from pathlib import Path

import numpy as np

_LARGE = 2**28  # bytes of a file from which on rows are read by themselves


class Column:
    """An array that rows are appended to. What was appended is put together when it is read.

    Args:
        values: the first rows; they may be a memory map.
    """

    def __init__(self, values):
        self._parts = [np.asanyarray(values)]

    @property
    def values(self):
        """All rows as one array."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def append(self, values):
        """Adds rows."""
        self._parts.append(values)

    def keep(self, mask):
        """Drops the rows where `mask` is false."""
        self._parts = [np.array(self.values[mask])]

    def save(self, path):
        """Writes a `.npy` file."""
        np.save(path, self.values)


def rows_of(values, rows):
    """Some rows of a column. Those of a large file are read and not mapped.

    Reading a mapped row leaves the 64 KiB around it in the memory of the process, so a few
    thousand rows would take as much as the file.

    Args:
        values: an array, or the memory map of a whole `.npy` file.
        rows: row numbers, of any shape.
    """
    if not isinstance(values, np.memmap) or values.nbytes < _LARGE:
        return values[rows]
    unique, places = np.unique(rows, return_inverse=True)
    found = np.empty((len(unique), *values.shape[1:]), values.dtype)
    size = values[:1].nbytes
    with open(values.filename, "rb", buffering=0) as file:
        for part, row in zip(found, unique.tolist(), strict=True):
            if os.preadv(file.fileno(), [part], values.offset + row * size) != size:
                raise OSError(f"{values.filename}: ends before row {row}")
    return found[places.reshape(np.shape(rows))]


@dataclasses.dataclass(frozen=True)
class Scratch:
    """Where the columns of a new index are written while items are added, instead of to memory.

    Attributes:
        folder: on the disk on which the index will be saved: that of `Index.save`.
        total: how many items are to come.
        dtype: of the embeddings that are kept, `"float32"`, or `"float16"` where they are so
            already.
    """

    folder: str | os.PathLike
    total: int
    dtype: str = "float32"

    def column(self, name, values):
        """A new `FileColumn`, with its first rows."""
        if values.dtype == np.float32 and values.ndim > 1:
            values = values.astype(self.dtype)
        # The name of a file that is being written: `storage.write` takes leftovers away.
        path = Path(self.folder) / f".tmp-{os.getpid()}-{name}.npy"
        return FileColumn(path, values, self.total)


class FileColumn(Column):
    """A column on the disk. What is appended takes no memory; it is mapped when it is read.

    Args:
        path: of a `.npy` file to make, on the disk on which the index will be saved.
        values: the first rows.
        total: how many rows are to come.
    """

    def __init__(self, path, values, total):
        self._path, self._total, self._rows = Path(path), total, 0
        self._row, self._dtype = values.shape[1:], values.dtype
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # The header holds the shape, so the file has all of its rows from the beginning.
        whole = np.lib.format.open_memmap(self._path, "w+", self._dtype, (total, *self._row))
        self._start = whole.offset
        del whole
        self.append(values)

    @property
    def values(self):
        return np.load(self._path, mmap_mode="r")[: self._rows]

    def append(self, values):
        values = np.ascontiguousarray(values, self._dtype)
        if self._rows + len(values) > self._total:
            raise ValueError(
                f"at most {self._total} items were announced; received {self._rows + len(values)}"
            )
        with self._path.open("r+b") as file:  # written, not mapped, so that it is no memory
            file.seek(self._start + self._rows * values[:0].itemsize * int(np.prod(self._row)))
            values.tofile(file)
        self._rows += len(values)

    def keep(self, mask):
        raise ValueError("items can be removed when the index has been saved and loaded")

    def save(self, path):
        """Gives the file its name; the column is there from now on."""
        if self._rows < self._total:
            np.save(path, self.values)
        else:
            os.link(self._path, path)
        self._path = Path(path)


def assign_ids(ids, count, taken, next_id):
    """Checked ids of new items, int64 `(count,)`.

    Args:
        ids: what the user gave, or None to count on from `next_id`.
        count: how many items come.
        taken: int64 ids of the items that are there.
        next_id: one more than the largest id there has been.

    Raises:
        ValueError: if they are not `count` distinct whole numbers ≥ 0 that are free.
    """
    if ids is None:
        return np.arange(next_id, next_id + count, dtype=np.int64)
    given = np.asarray(ids)
    if given.shape != (count,) or (count and given.dtype.kind not in "iu"):
        raise ValueError(
            f"`ids` must be {count} whole numbers, one an item; received shape {given.shape} of "
            f"{given.dtype}"
        )
    given = given.astype(np.int64)
    ordered = np.sort(given)
    if count and ordered[0] < 0:
        raise ValueError(f"`ids` must not be negative; received {ordered[0]}")
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise ValueError(f"`ids` must be distinct; received {_some(twice)} more than once")
    if count and ordered[0] < next_id:
        held = given[np.isin(given, taken)]
        if len(held):
            raise ValueError(f"`ids` must be new; the index already has {_some(held)}")
    return given


def held_ids(ids, held):
    """Checked ids of items that are there, int64.

    Args:
        ids: whole numbers, each once.
        held: int64 ids of the items.

    Raises:
        ValueError: if an id is not there, or given twice.
    """
    ids = np.atleast_1d(np.asarray(ids))
    if len(np.unique(ids)) < len(ids):
        raise ValueError("`ids` must be distinct; received one more than once")
    missing = ids[~np.isin(ids, held)]
    if len(missing):
        raise ValueError(f"`ids` must be in the index; it lacks {_some(missing)}")
    return ids.astype(np.int64)


def _some(ids):
    shown = ", ".join(map(str, ids[:5].tolist()))
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} others"
