"""Collections: items of a folder, a table or an object store, encoded into shards.

One piece of work makes one shard, whole or not at all, wherever it runs: in this process
(`encode`), on workers of this machine, or on a cluster (`zoo.collection.beam`).
"""

from typing import TYPE_CHECKING

from zoo.lazy import names_of

if TYPE_CHECKING:
    from zoo.arrays import joined
    from zoo.collection.encoding import encode_work
    from zoo.collection.job import encode
    from zoo.collection.shards import Collection, Encoded
    from zoo.collection.work import Work, left_out, list_captions, list_images, of_items, plan

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

_WHERE = {
    **dict.fromkeys(("Work", "left_out", "list_captions"), "zoo.collection.work"),
    **dict.fromkeys(("list_images", "of_items", "plan"), "zoo.collection.work"),
    **dict.fromkeys(("Collection", "Encoded"), "zoo.collection.shards"),
    "encode": "zoo.collection.job",
    "encode_work": "zoo.collection.encoding",
    "joined": "zoo.arrays",
}
__getattr__, __dir__ = names_of(__name__, _WHERE)
