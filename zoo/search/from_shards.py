"""Builds an index of shards, one after the other, in memory that does not grow with the items."""

from typing import Any

import numpy as np

from zoo import collection
from zoo.collection import Collection
from zoo.embeddings.arrays import as_arrays, length, take, thinned
from zoo.search import kinds
from zoo.search.columns import Scratch
from zoo.search.index import Index
from zoo.search.sharded import ShardedIndex, replaced_parts
from zoo.search.tuning import tune

GIB = 2**30
_TUNING_QUERIES = 256
_BESIDE = 0.75 * GIB  # TensorFlow, FAISS and a shard at a time


def build(
    shards: Collection,
    similarity: Any,
    folder: Any,
    kind: str = "flat",
    side: str = "images",
    candidates: int | None = None,
    training_rows: int = kinds.TRAINING_ROWS,
    options: dict[str, int] | None = None,
    memory: float | None = None,
    moments: bool = False,
    hubs: Any = None,
) -> Index | ShardedIndex:
    """An index over all items of a collection, saved in a folder; item `i` has the id `i`.

    FAISS' own part of an index is in memory while it is built. What is kept beside it, to rank
    candidates, goes to the disk a shard at a time. With `memory`, items that do not fit are in
    further parts, and the parts are searched from the disk, see `ShardedIndex`.

    Args:
        shards: a `zoo.collection.Collection`.
        similarity, kind, side, candidates, options: as of `Index.build`.
        folder: where the index is saved.
        training_rows: how many items train IVF-PQ, evenly out of all shards of a part.
        memory: GiB that building may take, as far as the index' own bytes are known beforehand, see
            `bytes_an_item`; None for one part.
        moments: whether to save the gallery's moments, which a calibration needs.
        hubs: as of `Index.build`; the first shard tells the ceiling.

    Returns:
        The index. An HNSW index is tuned, with gallery items as queries.

    Raises:
        ValueError, TypeError: as `Index.build`; or if so little memory holds no shard.
        InputError: if a shard cannot be read, or the index cannot be written.
    """
    arguments = {"similarity": similarity, "kind": kind, "side": side, "candidates": candidates}
    numbers = filled(shards)
    if memory is None:
        index = _part(shards, numbers, folder, arguments, training_rows, options, hubs)
        return _saved(index, folder, moments)
    cost = bytes_an_item(shards.shard(numbers[0]).arrays, training_rows, options, **arguments)
    room = memory * GIB - _BESIDE - cost["training"]
    groups = _groups(shards, numbers, room / cost["item"], memory)
    with replaced_parts(folder) as new_part:
        for own in groups:
            target = new_part()
            index = _part(shards, own, target, arguments, training_rows, options, hubs)
            hubs = index.hubs
            _saved(index, target, moments)
    return ShardedIndex.load(folder)


def filled(shards):
    """The numbers of the shards that hold items."""
    return [n for n in range(len(shards.paths)) if shards.starts[n + 1] > shards.starts[n]]


def sample(shards, numbers, most):
    """About so many items, evenly out of some shards: their embeddings, a dict of arrays."""
    share = min(1.0, most / sum(shards.starts[n + 1] - shards.starts[n] for n in numbers))
    parts = (shards.shard(number).arrays for number in numbers)
    return collection.joined([thinned(part, max(1, round(share * length(part)))) for part in parts])


def bytes_an_item(arrays, training_rows, options, similarity, kind, side, candidates):
    """What an item costs in memory, by an index of a few: `{"item", "training"}` in bytes.

    Of the embedding of a shard; the other arguments as of `build`.
    """
    few = take(as_arrays(arrays), slice(0, 1))
    flat = Index.build(few, similarity, "flat", side=side, candidates=candidates)
    rows, dim = flat.faiss.ntotal, flat.faiss.d
    options = options or {}
    if kind == "ivfpq":  # codes, FAISS' id twice, and lists that grow by doubling
        code = options.get("code_bytes", max(1, dim // 4))
        return {"item": rows * 2 * (code + 16), "training": 3 * 4 * dim * training_rows}
    links = 4 * (2 * options.get("links", 32) + 4) if kind == "hnsw" else 0
    return {"item": rows * (4 * dim + links + 16), "training": 0}


def _saved(index, folder, moments):
    if moments and index.has_moments:
        _ = index.moments  # so that they are saved with it
    index.save(folder)
    return index


def _groups(shards, numbers, most, memory):
    """The numbers of shards of each part, of at most so many items."""
    groups, count = [[]], 0
    for number in numbers:
        items = shards.starts[number + 1] - shards.starts[number]
        if items > most:
            raise ValueError(
                f"`memory` of {memory:g} GiB has no room for a shard of {items:,} items"
            )
        if count + items > most:
            groups.append([])
            count = 0
        groups[-1].append(number)
        count += items
    return groups


def _part(shards, numbers, folder, arguments, training_rows, options, hubs):
    total = sum(shards.starts[n + 1] - shards.starts[n] for n in numbers)
    training = sample(shards, numbers, training_rows) if arguments["kind"] == "ivfpq" else None
    index = None
    for number in numbers:
        arrays = shards.shard(number).arrays
        ids = np.arange(shards.starts[number], shards.starts[number + 1])
        if index is None:
            index = Index.build(
                arrays,
                **arguments,
                ids=ids,
                training=training,
                options={**(options or {}), "total": total},
                scratch=Scratch(folder, total, shards.manifest["dtype"]),
                hubs=hubs,
            )
            first = take(as_arrays(arrays), slice(0, _TUNING_QUERIES))
            training = None
        else:
            index.add(arrays, ids)
    if arguments["kind"] == "hnsw":
        # Gallery items stand in for the queries, which are not known yet.
        tune(index, first, k=min(10, len(index)))
    return index
