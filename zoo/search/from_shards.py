"""Builds an index of shards, one after the other, in the memory of the index itself."""

from typing import Any

from zoo import collection
from zoo.collection import Collection
from zoo.search import kinds, vectors
from zoo.search.columns import Scratch
from zoo.search.index import Index
from zoo.search.tuning import tune

_TUNING_QUERIES = 256


def build(
    shards: Collection,
    similarity: Any,
    scratch: Any,
    kind: str = "flat",
    side: str = "images",
    candidates: int | None = None,
    training_rows: int = kinds.TRAINING_ROWS,
    options: dict[str, int] | None = None,
) -> Index:
    """An index over all items of a collection; item `i` has the id `i`.

    FAISS' own part of the index is in memory. What is kept beside it, to rank candidates, goes to
    the disk, a shard at a time.

    Args:
        shards: a `zoo.collection.Collection`.
        similarity, kind, side, candidates, options: as of `Index.build`.
        scratch: a folder on the disk on which the index will be saved.
        training_rows: how many items train IVF-PQ, evenly out of all shards.

    Returns:
        An `Index`, not saved yet. An HNSW index is tuned, with gallery items as queries.

    Raises:
        ValueError, TypeError: as `Index.build`.
    """
    training = None
    if kind == "ivfpq" and len(shards) > training_rows:
        share = training_rows / len(shards)
        training = collection.joined(
            [
                vectors.thinned(shard.arrays, max(1, round(share * len(shard.names))))
                for shard in shards.shards()
            ]
        )
    index = None
    for shard in shards.shards():
        if index is None:
            index = Index.build(
                shard.arrays,
                similarity,
                kind=kind,
                side=side,
                candidates=candidates,
                training=training,
                options={**(options or {}), "total": len(shards)},
                scratch=Scratch(scratch, len(shards), shards.manifest["dtype"]),
            )
            first = vectors.take(vectors.as_arrays(shard.arrays), slice(0, _TUNING_QUERIES))
        else:
            index.add(shard.arrays)
    if kind == "hnsw":
        # Gallery items stand in for the queries, which are not known yet.
        tune(index, first, k=min(10, len(index)))
    return index
