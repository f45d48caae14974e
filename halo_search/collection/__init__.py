"""Collections: the items of a folder, a table or an object store, encoded into parts.

`encode` works on this machine; `halo_search.collection.cluster.encode_on_cluster` on a Ray cluster.
"""

from halo_search.collection.encoding import encode, encode_items
from halo_search.collection.parts import Collection, Encoded
from halo_search.collection.sources import Items, captions, pictures, read_source, vectors

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
