"""Checked arguments: numbers of queries, truths, shares; and queries that belong together."""

import numpy as np


def matrix(values, name):
    """Finite float64 `(queries, items)`, at least one of each; else a ValueError."""
    values = _numbers(values, name)
    if values.ndim != 2:
        raise ValueError(f"`{name}` must be (queries, items); received shape {values.shape}")
    if 0 in values.shape:
        raise ValueError(
            f"`{name}` must hold at least one query and one item; received shape {values.shape}"
        )
    return _finite(values, name)


def vector(values, name, length=None):
    """Finite float64 `(queries,)`, at least one, of a given length or any; else a ValueError."""
    values = _numbers(values, name)
    _check_length(values, name, length)
    return _finite(values, name)


def truths(values, name, length=None):
    """Booleans `(queries,)`; 0 and 1 of any type are taken. Else a ValueError."""
    values = np.asarray(values)
    _check_length(values, name, length)
    if values.dtype != bool:
        is_truth = np.isin(values, (0, 1))
        if not is_truth.all():
            position = int(np.flatnonzero(~is_truth)[0])
            raise ValueError(
                f"`{name}` must be true or false; received {values[position]} at position "
                f"{position}"
            )
    return values.astype(bool)


def share(value, name):
    """A number between 0 and 1, both excluded; else a ValueError."""
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "fiu" or not 0 < number < 1:
        raise ValueError(f"`{name}` must be a number between 0 and 1; received {value!r}")
    return float(number)


def whole(value, name, least=1):
    """A whole number of at least `least`; else a ValueError."""
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "fiu" or number != np.floor(number):
        raise ValueError(f"`{name}` must be a whole number; received {value!r}")
    if number < least:
        raise ValueError(f"`{name}` must be at least {least}; received {value!r}")
    return int(number)


def numbered(groups, count, name="groups"):
    """Group numbers 0 … K − 1 of `count` queries, int64 `(count,)`; each its own where None."""
    if groups is None:
        return np.arange(count)
    groups = np.asarray(groups)
    if groups.shape != (count,):
        raise ValueError(
            f"`{name}` must be of shape ({count},), one a query; received {groups.shape}"
        )
    return np.unique(groups, return_inverse=True)[1]


def weights(groups):
    """One over the size of each query's group, `(queries,)`."""
    return 1 / np.bincount(groups)[groups]


def one_of_each(groups, rng):
    """A query of every group, drawn at random: sorted row numbers."""
    order = rng.permutation(len(groups))
    return np.sort(order[np.unique(groups[order], return_index=True)[1]])


def halves(groups, seed):
    """The queries of half of the groups, drawn at random, and those of the others."""
    chosen = np.random.default_rng(seed).permutation(int(groups.max()) + 1)
    first = np.isin(groups, chosen[: (len(chosen) + 1) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def _numbers(values, name):
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must hold numbers; received {values.dtype}")
    return values.astype(np.float64)


def _check_length(values, name, length):
    if values.ndim != 1 or not len(values):
        raise ValueError(f"`{name}` must be one value a query; received shape {values.shape}")
    if length is not None and len(values) != length:
        raise ValueError(f"`{name}` must be of {length} queries; received {len(values)}")


def _finite(values, name):
    is_finite = np.isfinite(values)
    if not is_finite.all():
        position = tuple(int(i) for i in np.argwhere(~is_finite)[0])
        where = position if len(position) > 1 else position[0]
        raise ValueError(f"`{name}` must be finite; received {values[position]} at {where}")
    return values
