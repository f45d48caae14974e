"""Collections: the items of a folder, a table or an object store, encoded into parts.

`encode` works on this machine; `zoo.collection.beam` on a cluster.
"""

from typing import TYPE_CHECKING

from zoo.former import lookup

if TYPE_CHECKING:
    from zoo.collection.encoding import encode, encode_items
    from zoo.collection.parts import Collection, Encoded
    from zoo.collection.sources import Items, captions, pictures, read_source, vectors

_WHERE = {  # imported at first use (PEP 562): a search box answers without Keras
    **dict.fromkeys(("encode", "encode_items"), "zoo.collection.encoding"),
    **dict.fromkeys(("Collection", "Encoded"), "zoo.collection.parts"),
    **dict.fromkeys(("Items", "captions", "pictures"), "zoo.collection.sources"),
    **dict.fromkeys(("read_source", "vectors"), "zoo.collection.sources"),
}
__all__ = [
    "Collection",
    "Encoded",
    "Items",
    "captions",
    "encode",
    "encode_items",
    "pictures",
    "read_source",
    "vectors",
]


__getattr__ = lookup(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted(__all__)
