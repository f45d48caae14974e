"""What an index keeps beside FAISS: columns with one row an item, growing in place; and ids."""

import numpy as np


class Column:
    """An array that rows are appended to, with room to spare.

    Args:
        values: the first rows, kept as they are (they may be a memory map) until they change.
    """

    def __init__(self, values):
        self._buffer = np.asanyarray(values)
        self._size = len(self._buffer)

    @property
    def values(self):
        """The rows, without a copy."""
        return self._buffer[: self._size]

    def __len__(self):
        return self._size

    def append(self, values):
        """Adds rows; the buffer grows by half when it is full."""
        needed = self._size + len(values)
        if needed > len(self._buffer):
            room = max(needed, self._size + self._size // 2)
            buffer = np.empty((room, *self._buffer.shape[1:]), self._buffer.dtype)
            buffer[: self._size] = self.values
            self._buffer = buffer
        self._buffer[self._size : needed] = values
        self._size = needed

    def set(self, rows, value):
        """Gives some rows one value."""
        if not self._buffer.flags.writeable:  # read from a file
            self._buffer = np.array(self._buffer)
        self.values[rows] = value

    def keep(self, mask):
        """Drops the rows where `mask` is false."""
        self._buffer = np.array(self.values[mask])
        self._size = len(self._buffer)


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


def rows_of(ids, held, alive):
    """The rows of some ids, in the order given.

    Args:
        ids: whole numbers, each once.
        held: int64 ids of all rows.
        alive: `(rows,)` whether a row is still there.

    Raises:
        ValueError: if an id is not there, or given twice.
    """
    ids = np.atleast_1d(np.asarray(ids))
    if len(np.unique(ids)) < len(ids):
        raise ValueError("`ids` must be distinct; received one more than once")
    rows = np.flatnonzero(alive & np.isin(held, ids))
    missing = ids[~np.isin(ids, held[rows])]
    if len(missing):
        raise ValueError(f"`ids` must be in the index; it lacks {_some(missing)}")
    return rows


def _some(ids):
    shown = ", ".join(map(str, ids[:5].tolist()))
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} others"
