"""What an index keeps beside FAISS: columns with one row an item; and the ids of new items."""

import numpy as np

LARGEST_ID = 2**63 - 2  # one more is still an int64, which `next_id` has to be


class Column:
    """An array that rows are appended to, which are put together when it is read."""

    def __init__(self, values):
        self._parts = [np.asarray(values)]

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
        self._parts = [self.values[mask]]

    def cut(self, rows):
        """Drops the rows after the first `rows`."""
        self._parts = [self.values[:rows]]


def assign_ids(ids, count, taken, next_id):
    """Checked ids of `count` new items, int64; None counts on from `next_id`, one more than the
    largest id so far. Raises ValueError unless they are distinct, from 0 and not in `taken`."""
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


def whole_ids(ids, name="ids"):
    """Ids as int64 `(ids,)`; a ValueError unless they are whole numbers, one or a list."""
    try:
        given = np.atleast_1d(np.asarray(ids))
    except ValueError:  # lists of unequal lengths
        raise ValueError(f"`{name}` must be whole numbers; received {ids!r}") from None
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        received = f"shape {given.shape} of {given.dtype}"
        raise ValueError(f"`{name}` must be whole numbers, one or a list; received {received}")
    refuse_missing(given[given > LARGEST_ID], name)
    return given.astype(np.int64)


def held_ids(ids, held, name="ids"):
    """Checked ids of items that are there, int64; a ValueError if one is not, or given twice."""
    ids = whole_ids(ids, name)
    if len(np.unique(ids)) < len(ids):
        raise ValueError(f"`{name}` must be distinct; received one more than once")
    refuse_missing(ids[~np.isin(ids, held)], name)
    return ids


def refuse_missing(missing, name="ids"):
    """Raises ValueError if there are ids, `(ids,)`, that the index does not hold."""
    if len(missing):
        raise ValueError(f"`{name}` must be in the index; it lacks {_some(missing)}")


def _some(ids):
    shown = ", ".join(map(str, ids[:5].tolist()))
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} others"
