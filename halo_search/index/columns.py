"""What an index keeps beside FAISS: columns with one row an item; and the ids of new items."""

import collections
import fnmatch

import numpy as np

from halo_search.files.text_files import comparable

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

    def keep(self, rows):
        """Drops all rows but some, a mask or a slice."""
        self._parts = [self.values[rows]]


def assign_ids(ids, count, taken, next_id):
    """Checked ids of `count` new items, int64; None counts on from `next_id`, one more than the
    largest id so far. Raises ValueError unless they are distinct whole numbers not in `taken`."""
    if ids is None:
        return np.arange(next_id, next_id + count, dtype=np.int64)
    given = whole_ids(ids)
    if len(given) != count:
        raise ValueError(f"`ids` must be {count} numbers, one an item; received {len(given)}")
    if given.min(initial=next_id) < next_id and len(held := given[np.isin(given, taken)]):
        raise ValueError(f"`ids` must be new; the index already has {_some(held)}")
    return given


def whole_ids(ids, name="ids"):
    """Ids as int64 `(ids,)`; a ValueError unless they are distinct whole numbers from 0, one or a
    list."""
    try:
        given = np.atleast_1d(np.asarray(ids))
    except ValueError:  # lists of unequal lengths
        raise ValueError(f"`{name}` must be whole numbers; received {ids!r}") from None
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        received = f"shape {given.shape} of {given.dtype}"
        raise ValueError(f"`{name}` must be whole numbers, one or a list; received {received}")
    if len(bad := given[(given < 0) | (given > LARGEST_ID)]):
        raise ValueError(f"`{name}` must be from 0 to {LARGEST_ID}; received {_some(bad)}")
    distinct, counts = np.unique(given, return_counts=True)
    if len(twice := distinct[counts > 1]):
        raise ValueError(f"`{name}` must be distinct; received {_some(twice)} more than once")
    return given.astype(np.int64)


def held_ids(ids, held, name="ids"):
    """Checked ids of items that are there, int64; a ValueError if one is not, or given twice."""
    ids = whole_ids(ids, name)
    refuse_missing(ids[~np.isin(ids, held)], name)
    return ids


def ids_among(among, names):
    """The ids of items by their names, or by a pattern of names; numbers are ids, also as texts
    that no item is called. Names in NFC and NFD are the same (`comparable`), except where both are
    there. A ValueError if there is no such item, or a text is given twice."""
    if isinstance(among, str):
        if names is None:
            raise ValueError(f"`among` must be ids: the items have no names; received {among!r}")
        pattern = comparable(among)
        forms = {number: comparable(name) for number, name in names.items()}
        matches = [number for number, form in forms.items() if fnmatch.fnmatch(form, pattern)]
        if not matches:
            raise ValueError(f"`among` must be a pattern of names; {among!r} fits none")
        return matches
    if not any(isinstance(item, str) for item in among):
        return among
    texts, by_name, by_form = [str(item) for item in among], {}, {}
    for number, name in (names or {}).items():
        by_name.setdefault(name, []).append(number)
        by_form.setdefault(comparable(name), []).append(number)
    matches = [by_name.get(text) or by_form.get(comparable(text)) for text in texts]
    for text, ids in zip(texts, matches, strict=True):
        if ids is None and not text.isdecimal():
            raise ValueError(f"`among` must be names or ids of items; {text!r} is none")
    text, count = collections.Counter(texts).most_common(1)[0]
    if count > 1:
        raise ValueError(f"`among` must be distinct; received {text!r} twice")
    return [
        number for text, ids in zip(texts, matches, strict=True) for number in ids or [int(text)]
    ]


def refuse_missing(missing, name="ids"):
    """Raises ValueError if there are ids, `(ids,)`, that the index does not hold."""
    if len(missing):
        raise ValueError(f"`{name}` must be in the index; it lacks {_some(missing)}")


def _some(ids):
    """Up to five ids for a message, and how many others."""
    shown = ", ".join(map(str, ids[:5].tolist()))
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} others"
