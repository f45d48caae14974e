"""Collections: the items of a folder, a table or an object store, encoded into parts.

`encode` works on this machine; `zoo.collection.beam` on a cluster.
"""

from zoo.collection.encoding import encode, encode_items
from zoo.collection.parts import Collection, Encoded
from zoo.collection.sources import Items, captions, pictures, read_source, vectors
from zoo.errors import lookup

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

__getattr__ = lookup(__name__)  # names of earlier versions
