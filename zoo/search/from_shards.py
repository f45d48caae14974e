"""Builds an index of shards, one after the other, so that their embeddings are never all there."""

from typing import Any

import numpy as np

from zoo import collection
from zoo.collection import Collection
from zoo.embeddings.arrays import length, thinned
from zoo.search.index import Index


def build(
    shards: Collection,
    similarity: Any,
    folder: Any,
    side: str = "images",
    candidates: int | None = None,
    hubs: Any = None,
) -> Index:
    """An index over all items of a collection, saved in a folder; item `i` has the id `i`.

    Arguments and errors as of `Index.build`; the first shard tells the ceiling of hubs. An
    InputError if a shard cannot be read, or the index cannot be written.
    """
    index = None
    for number in filled(shards):
        arrays = shards.shard(number).arrays
        ids = np.arange(shards.starts[number], shards.starts[number + 1])
        if index is None:
            index = Index.build(
                arrays, similarity, ids=ids, side=side, candidates=candidates, hubs=hubs
            )
            index.reserve(len(shards) - len(index))
        else:
            index.add(arrays, ids)
    if index.has_moments:
        _ = index.moments  # so that they are saved with it
    index.save(folder)
    return index


def filled(shards):
    """The numbers of the shards that hold items."""
    return [n for n in range(len(shards.paths)) if shards.starts[n + 1] > shards.starts[n]]


def sample(shards, numbers, most):
    """About so many items, evenly out of some shards: their embeddings, a dict of arrays."""
    share = min(1.0, most / sum(shards.starts[n + 1] - shards.starts[n] for n in numbers))
    parts = (shards.shard(number).arrays for number in numbers)
    return collection.joined([thinned(part, max(1, round(share * length(part)))) for part in parts])
