"""From encoded parts to an index: the place where an engine takes the items over."""

from typing import Any

import numpy as np

from zoo.collection import Collection
from zoo.embeddings.arrays import joined, length, thinned
from zoo.search.index import Index


def build(
    parts: Collection,
    similarity: Any,
    side: str = "images",
    candidates: int | None = None,
    hubs: Any = None,
    folder: Any = None,
) -> tuple[Any, dict[int, str]]:
    """An index over a collection, a `LanceIndex` where a folder is given, and the items' names by
    id; as `Index.build`. The first part tells hubs' ceiling."""
    names = {}

    def arrays():
        for ids, part in parts.read():
            names.update(zip(ids.tolist(), part.names, strict=True))
            yield ids, part.arrays

    if folder is not None:
        from zoo.search.lance import LanceIndex  # which loads LanceDB

        if candidates is not None:
            raise ValueError("`candidates` must be None for LanceDB: nothing is ranked again")
        found = (part for _, part in arrays())
        return LanceIndex.build(folder, found, similarity, side=side, hubs=hubs), names
    found = arrays()
    ids, first = next(found)
    index = Index.build(first, similarity, ids, side, candidates, hubs=hubs)
    index.reserve(len(parts) - len(index))
    for ids, part in found:
        index.add(part, ids)
    if index.has_moments:
        _ = index.moments  # so that they are saved with it
    return index, names


def sample(parts: Collection, most: int) -> dict[str, np.ndarray]:
    """The embeddings of about so many items, evenly out of all parts."""
    share = min(1.0, most / len(parts))
    arrays = (part.arrays for _, part in parts.read())
    return joined([thinned(part, max(1, round(share * length(part)))) for part in arrays])
