"""Collections: items of a folder, a table or an object store, encoded into shards.

One piece of work makes one shard, whole or not at all, wherever it runs: in this process
(`encode`), on workers of this machine, or on a cluster (`zoo.collection.beam`).
"""

from typing import TYPE_CHECKING

from zoo.former import lookup

if TYPE_CHECKING:
    from zoo.collection.encoding import encode_work
    from zoo.collection.job import encode
    from zoo.collection.shards import Collection, Encoded
    from zoo.collection.work import Work, left_out, list_captions, list_images, of_items, plan
    from zoo.embeddings.arrays import joined

__all__ = [
    "Collection",
    "Encoded",
    "Work",
    "encode",
    "encode_work",
    "joined",
    "left_out",
    "list_captions",
    "list_images",
    "of_items",
    "plan",
]

_WHERE = {  # imported at first use (PEP 562): a search box answers without Keras
    **dict.fromkeys(("Work", "left_out", "list_captions"), "zoo.collection.work"),
    **dict.fromkeys(("list_images", "of_items", "plan"), "zoo.collection.work"),
    **dict.fromkeys(("Collection", "Encoded"), "zoo.collection.shards"),
    "encode": "zoo.collection.job",
    "encode_work": "zoo.collection.encoding",
    "joined": "zoo.embeddings.arrays",
}


__getattr__ = lookup(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted(__all__)
