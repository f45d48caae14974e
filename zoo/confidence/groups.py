"""Queries that belong together, such as the captions of one image: each group counts once."""

import numpy as np

from zoo.confidence import checks


def numbered(groups, count, name="groups"):
    """Group numbers 0 … K − 1 of queries, int64 `(count,)`; each query its own where None.

    Args:
        groups: `(count,)` of any kind that can be compared, or None.
        count: number of queries.

    Raises:
        ValueError: if the shape differs.
    """
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


def conformal_quantile(values, error, groups=None):
    """The value that a new query's does not exceed with probability at least 1 − error.

    Every group has the same mass, shared by its members, and so has the new query, at infinity.
    Without groups this is the ⌈(n + 1)(1 − error)⌉-th smallest value.

    Args:
        values: `(queries,)`.
        error: in (0, 1).
        groups: numbers of `numbered`, or None.

    Returns:
        One of the values; infinity where the groups are too few.

    Reference: Lee, Barber and Willett, "Distribution-free inference with hierarchical data", 2023,
        for groups: a new query of a new group.
    """
    values = checks.vector(values, "values")
    groups = numbered(groups, len(values))
    order = np.argsort(values, kind="stable")
    # In units of one over the groups and the new query, so that (n + 1)·error is meant exactly.
    mass = np.cumsum(weights(groups)[order])
    needed = (1 - error) * (int(groups.max()) + 2) - _ROUNDING
    place = np.searchsorted(mass, needed, side="left")
    return float(values[order[place]]) if place < len(order) else float("inf")


_ROUNDING = 1e-9
