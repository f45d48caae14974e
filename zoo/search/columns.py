"""What an index keeps beside FAISS: columns with one row an item; and the ids of new items."""

import contextlib
import dataclasses
import os
import weakref
from pathlib import Path

import numpy as np

from zoo.files.array_files import npy_header
from zoo.files.atomic import temporary_file

_LARGE = 2**28  # bytes of a file from which on rows are read by themselves
LARGEST_ID = 2**63 - 2  # one more is still an int64, which `next_id` has to be


class Column:
    """An array that rows are appended to, which are put together when it is read.

    The first rows may be a memory map.
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

    def cut(self, rows):
        """Drops the rows after the first `rows`."""
        self._parts = [self.values[:rows]]

    def save(self, path):
        """Writes a `.npy` file."""
        np.save(path, self.values)


def open_column(path):
    """The memory map of a `.npy` file, which can be read on when the file has lost its name.

    Another process may replace an index while this one reads it. The map has the open file as
    `descriptor`, and it is closed with the map.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with open(descriptor, "rb", closefd=False) as file:
            shape, is_fortran, dtype = npy_header(file)
            if is_fortran:
                raise ValueError("its rows do not lie one behind the other")
            return _mapped(descriptor, file.tell(), dtype, shape)
    except BaseException:
        os.close(descriptor)
        raise


def _mapped(descriptor, offset, dtype, shape):
    if not np.prod(shape):  # nothing can be mapped
        os.close(descriptor)
        return np.empty(shape, dtype)
    with open(descriptor, "rb", closefd=False) as file:
        values = np.memmap(file, dtype, "r", offset, shape)
    values.descriptor = descriptor
    weakref.finalize(values, os.close, descriptor)
    return values


def rows_of(values, rows):
    """Some rows, of any shape, of a column. Those of a large file are read and not mapped.

    Reading a mapped row leaves the 64 KiB around it in the memory of the process, so a few thousand
    rows would take as much as the file.
    """
    descriptor = getattr(values, "descriptor", None)
    if descriptor is None or values.nbytes < _LARGE:
        return values[rows]
    unique, places = np.unique(rows, return_inverse=True)
    found = np.empty((len(unique), *values.shape[1:]), values.dtype)
    size = values[:1].nbytes
    for part, row in zip(found, unique.tolist(), strict=True):
        if os.preadv(descriptor, [part], values.offset + row * size) != size:
            raise OSError(f"a file of {len(values):,} rows ends before row {row}")
    return found[places.reshape(np.shape(rows))]


@dataclasses.dataclass(frozen=True)
class Scratch:
    """Where the columns of a new index are written while items are added, instead of to memory.

    Attributes:
        folder: on the disk on which the index will be saved: that of `Index.save`.
        total: how many items are to come.
        dtype: of the embeddings that are kept: `"float16"` where they are so already.
    """

    folder: str | os.PathLike
    total: int
    dtype: str = "float32"

    def column(self, name, values):
        """A new `FileColumn`, with its first rows."""
        if values.dtype == np.float32 and values.ndim > 1:
            values = values.astype(self.dtype)
        return FileColumn(self.folder, name, values, self.total)


class FileColumn(Column):
    """A column on the disk, of `total` rows to come. They take no memory until they are read.

    The folder is on the disk on which the index will be saved.
    """

    def __init__(self, folder, name, values, total):
        self._total, self._rows = total, 0
        self._row, self._dtype = values.shape[1:], values.dtype
        Path(folder).mkdir(parents=True, exist_ok=True)
        # Held open, since a save takes the name away.
        self._path, self._descriptor = temporary_file(folder, f"{name}.npy")
        weakref.finalize(self, _close, self._descriptor, self._path)
        # The header holds the shape, so the file has all of its rows from the beginning.
        whole = np.lib.format.open_memmap(self._path, "w+", self._dtype, (total, *self._row))
        self._start = whole.offset
        del whole
        self.append(values)

    @property
    def values(self):
        shape = (self._rows, *self._row)
        return _mapped(os.dup(self._descriptor), self._start, self._dtype, shape)

    def append(self, values):
        values = np.ascontiguousarray(values, self._dtype)
        if self._rows + len(values) > self._total:
            raise ValueError(
                f"at most {self._total} items were announced; received {self._rows + len(values)}"
            )
        # Written, not mapped, so that it is no memory.
        with open(self._descriptor, "r+b", closefd=False) as file:
            file.seek(self._start + self._rows * values.itemsize * int(np.prod(self._row)))
            values.tofile(file)
        self._rows += len(values)

    def cut(self, rows):
        self._rows = rows

    def keep(self, mask):
        raise ValueError("items can be removed when the index has been saved and loaded")

    def save(self, path):
        """Renames the file if nothing more can be appended to it, else copies it."""
        if self._rows == self._total:
            with contextlib.suppress(OSError):  # it has no name any more, or is on another disk
                os.rename(self._path, path)
                return
        super().save(path)


def _close(descriptor, path):
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    os.close(descriptor)


def assign_ids(ids, count, taken, next_id):
    """Checked ids of `count` new items, int64; None counts on from `next_id`.

    `next_id` is one more than the largest id there has been, `taken` the ids that are there.

    Raises:
        ValueError: if they are not `count` distinct whole numbers from 0 to `LARGEST_ID` that are
            free; or if none is left to count on with.
    """
    if ids is None:
        if next_id + count - 1 > LARGEST_ID:
            raise ValueError(
                f"`ids` must be given: no id is left behind the largest, {next_id - 1}"
            )
        return np.arange(next_id, next_id + count, dtype=np.int64)
    given = np.asarray(ids)
    if given.shape != (count,) or (count and given.dtype.kind not in "iu"):
        raise ValueError(
            f"`ids` must be {count} whole numbers, one an item; received shape {given.shape} of "
            f"{given.dtype}"
        )
    if count and int(given.max()) > LARGEST_ID:
        raise ValueError(f"`ids` must be at most {LARGEST_ID}; received {given.max()}")
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
    """Checked ids of items that are there, int64; a ValueError if one is not, or given twice."""
    ids = np.atleast_1d(np.asarray(ids))
    if len(np.unique(ids)) < len(ids):
        raise ValueError("`ids` must be distinct; received one more than once")
    refuse_missing(ids[~np.isin(ids, held)])
    return ids.astype(np.int64)


def refuse_missing(missing):
    """Raises ValueError if there are ids, `(ids,)`, that the index does not hold."""
    if len(missing):
        raise ValueError(f"`ids` must be in the index; it lacks {_some(missing)}")


def _some(ids):
    shown = ", ".join(map(str, ids[:5].tolist()))
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} others"
