"""The rows of a collection: a Milvus client's calls, in parts that a cluster takes."""

import numpy as np

_KEYS, _QUERIES = 4096, 1024  # of one call
_BYTES = 2**24  # of vectors in one call; a cluster takes 64 MB


class Rows:
    """Rows of items, `size` of them an item: the rows of item i have ids from i * size on.

    Args:
        client: a `pymilvus.MilvusClient`.
        collection: its name.
        size: how many rows an item may have, 1 but for sets.
        dim: of a vector.
    """

    def __init__(self, client, collection, size, dim):
        self._client, self._collection, self._size, self._dim = client, collection, size, dim

    @property
    def items_at_once(self):
        """Of how many items the rows may be inserted at once."""
        return max(1, _BYTES // (4 * self._dim * self._size))

    def insert(self, rows):
        """Inserts rows, a list of dicts."""
        self._client.insert(self._collection, rows)

    def delete(self, ids):
        """Deletes all rows of items."""
        for keys in parts(self._keys(ids), _KEYS):
            self._client.delete(self._collection, ids=keys.tolist())

    def count(self, where=""):
        """How many rows there are."""
        found = self._client.query(self._collection, filter=where, output_fields=["count(*)"])
        return int(found[0]["count(*)"])

    def held(self, ids):
        """Which of the ids are of items in the collection, int64."""
        found = [row["id"] // self._size for row in self._get(ids * self._size, "id")]
        return np.array(found, np.int64)

    def nearest(self, vectors, k, where, search_params):
        """Milvus' values and the ids of rows, `(queries, k)` each, NaN and −1 where none are.

        Args:
            vectors: float32 `(queries, dim)`.
            k: how many.
            where: Milvus' filter, `""` for none.
            search_params: of Milvus' index.
        """
        values, keys = (
            np.full((len(vectors), k), np.nan, np.float32),
            np.full((len(vectors), k), -1),
        )
        for part in parts(np.arange(len(vectors)), _QUERIES):
            found = self._client.search(
                self._collection,
                data=list(vectors[part]),
                filter=where,
                limit=k,
                anns_field="vector",
                search_params={"params": search_params},
            )
            for row, hits in zip(part, found, strict=True):
                values[row, : len(hits)] = [hit["distance"] for hit in hits]
                keys[row, : len(hits)] = [hit["id"] for hit in hits]
        return values, keys

    def sets(self, ids):
        """The sets with these ids, ascending, as an embedding; a mask only if one is smaller."""
        shape = (len(ids), self._size)
        elements, mask = np.zeros((*shape, self._dim), np.float32), np.zeros(shape, bool)
        for row in self._get(self._keys(ids), "vector"):
            place = np.searchsorted(ids, row["id"] // self._size), row["id"] % self._size
            elements[place], mask[place] = row["vector"], True
        return {"elements": elements} if mask.all() else {"elements": elements, "mask": mask}

    def _keys(self, ids):
        return (ids[:, None] * self._size + np.arange(self._size)).reshape(-1)

    def _get(self, keys, field):
        for part in parts(keys, _KEYS):
            wanted = part.tolist()
            yield from self._client.get(self._collection, ids=wanted, output_fields=["id", field])


def parts(values, size):
    """Yields an array so many values at a time."""
    return (values[start : start + size] for start in range(0, len(values), size))
