"""Rows of a sweep: a recipe's variants, and which columns and curves the paper makes of them."""

from typing import NamedTuple

from studies.seed_table import Row


class Sweep(NamedTuple):
    """One table, or one figure, of a paper."""

    rows: dict  # `{name: Row}`
    columns: tuple = ()  # `Column`s that the paper prints; those of a run without them are left out
    curves: "Curves | None" = None  # what the paper draws, or None: a `Curves`
    more: tuple = ()  # `Column`s of further tables of the same rows


class Curves(NamedTuple):
    """Metrics over a number that the rows vary."""

    label: str  # of that number
    lines: dict  # `{name of a line: [(number, name of a row), …]}`
    columns: tuple  # `Column`s, one panel each


def rows_of(main, variants):
    """`{name: Row}` of a recipe's variants, `{name: flags}`."""
    return {name: Row(main, tuple(flags)) for name, flags in variants.items()}


def with_and_without(flags):
    """All combinations of some parts: `{"VIB, PP": [flags that switch off the others]}`."""
    variants = {}
    for chosen in range(2 ** len(flags) - 1, -1, -1):
        kept = [name for place, name in enumerate(flags) if chosen >> place & 1]
        off = [flag for name, flag in flags.items() if name not in kept]
        variants[", ".join(kept) or "none of them"] = off
    return variants
