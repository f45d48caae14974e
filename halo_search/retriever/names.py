"""What the items of a gallery are called."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class ItemNames:
    """Names by id. An item without one goes by its number, where others have names.

    The caller holds the index's lock, so that names and items change together.
    """

    def __init__(self, by_id: dict[int, str] | None = None):
        self.by_id = by_id  # replaced by every change: parts of the gallery share it

    @classmethod
    def given(cls, ids: np.ndarray, names: Sequence[str] | None) -> "ItemNames":
        """Names in the order of ids, or None."""
        return cls(None if names is None else dict(zip(ids.tolist(), names, strict=True)))

    def of(self, ids: np.ndarray) -> list[str] | None:
        """The names of ids; None where no item has one."""
        if self.by_id is None:
            return None
        return [self.by_id.get(number, str(number)) for number in ids.tolist()]

    def add(self, ids: np.ndarray, names: Sequence[str] | None) -> None:
        """Names new items; None: they have no names."""
        if names is not None:
            self.by_id = {**(self.by_id or {}), **dict(zip(ids.tolist(), names, strict=True))}

    def remove(self, ids: np.ndarray) -> None:
        """Drops the names of items."""
        if self.by_id is not None:
            gone = set(ids.tolist())
            rest = self.by_id.items()
            self.by_id = {number: name for number, name in rest if number not in gone}


def checked_names(names: Any, count: int) -> list[str] | None:
    """Names of `count` items as strings, or None; a ValueError unless they are as many."""
    if names is None:
        return None
    if isinstance(names, str) or len(names) != count:
        received = repr(names) if isinstance(names, str) else len(names)
        raise ValueError(f"`names` must be {count} strings; received {received}")
    return [str(name) for name in names]
