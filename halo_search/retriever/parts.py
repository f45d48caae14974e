"""Parts of a gallery that were asked lately: each is indexed and calibrated once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from halo_search.confidence import Probes

MOST_PARTS, MOST_ITEMS = 8, 200_000  # that are held at once


class RecentParts:
    """Retrievers over parts of one gallery, the latest ones; the caller holds the index's lock."""

    def __init__(self):
        self._parts: dict[bytes, Any] = {}  # from ids to a retriever, the latest last

    def get(self, ids: np.ndarray, probes: Probes | None, make: Callable[[], Any]) -> Any:
        """The part of sorted ids, made by `make` if it was not asked lately, or by other probes."""
        key = ids.tobytes()
        part = self._parts.pop(key, None)
        if part is None or part.probes is not probes:
            part = make()
        self._parts[key] = part
        while self._are_too_many():
            oldest = next(iter(self._parts))
            del self._parts[oldest]
        return part

    def _are_too_many(self):
        """Whether the oldest part has to go; the latest stays, however large it is."""
        count, items = len(self._parts), sum(map(len, self._parts.values()))
        return count > MOST_PARTS or (count > 1 and items > MOST_ITEMS)

    def clear(self) -> None:
        """Drops all parts, after a change of the gallery."""
        self._parts.clear()
