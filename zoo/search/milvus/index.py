"""A gallery in Milvus: items go in as rows, and neighbours come back with similarities."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zoo.arrays import as_arrays, by_query, length, take
from zoo.embeddings import POINT, SET, EmbeddingLike
from zoo.errors import InputError
from zoo.search import plan, storage, units
from zoo.search.columns import assign_ids, held_ids
from zoo.search.milvus import fields
from zoo.search.milvus.rows import Rows, parts
from zoo.search.rerank import Reranker, best, unique_candidates
from zoo.similarities.spaces import SPACES

MOST = 16384  # neighbours of a query that Milvus finds
_SETS = 8  # queries at once whose candidates are fetched


class MilvusIndex:
    """A gallery in a Milvus collection, searched and scored as `zoo.search.Index` does.

    Milvus is given the vectors of the similarity's `SearchSpace`. CSD, W2, the cosine and all else
    that a space ranks by are therefore exact wherever Milvus' index is, and have the similarity's
    units. Of sets every element is a row: elements are found by their cosine, and the sets that
    they belong to are fetched and ranked by the similarity itself.

    ```python
    client = pymilvus.MilvusClient("birds.db")  # or uri="http://milvus.example:19530", token=…
    index = MilvusIndex.create(client, "birds", photos, "csd")
    index.add(photos, ids=np.arange(1000))
    scores, ids = index.search(captions, k=10)
    index = MilvusIndex(client, "birds")  # after a restart
    ```

    Args:
        client: a `pymilvus.MilvusClient`.
        collection: the name of a collection that `create` made.
        similarity: the one to score with, of the class that the collection was made for: that of a
            model trained further, say. None takes the saved one.

    Attributes:
        description: what the collection holds, JSON values.
        search_params: what Milvus' index takes in a search, `{"ef": 100}`.

    Raises:
        InputError: if there is no such collection, or it is of another similarity.
    """

    def __init__(self, client: Any, collection: str, similarity: Any = None):
        self.client, self.collection, self.search_params = client, collection, {}
        self.description = fields.read(client, collection)
        saved = storage.saved_similarity(collection, self.description)
        self.similarity = saved if similarity is None else units.resolve(similarity)
        storage.check_same(collection, units.name_of(saved), units.name_of(self.similarity))
        self._size = self.description["elements"]
        self._rows = Rows(client, collection, self._size, self.description["vector_dim"])
        self._space = SPACES[self.description["space"]]
        self._is_set = self.description["embedding"] == SET
        self._score = None if self._is_set else self.similarity.scorer()
        self._reranker = Reranker(self.similarity, self.description["side"])
        client.load_collection(collection)

    @classmethod
    def create(
        cls,
        client: Any,
        collection: str,
        like: EmbeddingLike,
        similarity: Any,
        side: str = "images",
        uncertainty_measure: str | None = None,
        names: bool = False,
        index_type: str = "FLAT",
        index_params: dict[str, Any] | None = None,
    ) -> "MilvusIndex":
        """A new, empty collection, of which every search sees what was added before it.

        Its fields are `id`, `vector`, `uncertainty` unless the embeddings are points, `name` if
        asked for, and for sets `item` and `element`.

        Args:
            client, collection: as above.
            like: embeddings as the gallery's. Only their kind, dimension and number of elements
                are read.
            similarity, side, uncertainty_measure: as of `Index.build`.
            names: whether every item has a name, a string of at most 4,096 bytes.
            index_type: Milvus' own, `"FLAT"` (exact), `"HNSW"`, `"IVF_PQ"` and so on.
            index_params: of that type, `{"M": 32, "efConstruction": 200}`.

        Raises:
            ValueError: if an argument is not what it has to be, or Milvus cannot rank by the
                similarity.
            InputError: if the collection exists, or pymilvus is not installed.
        """
        description = fields.describe(like, similarity, side, uncertainty_measure, names)
        schema = fields.schema(description)
        if client.has_collection(collection):
            raise InputError(f"{collection}: the collection exists")
        settings, metric = client.prepare_index_params(), fields.metric(description)
        params = index_params or {}
        settings.add_index("vector", index_type=index_type, metric_type=metric, params=params)
        client.create_collection(
            collection,
            schema=schema,
            index_params=settings,
            properties={fields.PROPERTY: json.dumps(description)},
            consistency_level="Strong",
        )
        return cls(client, collection)

    def add(
        self,
        gallery_embeddings: EmbeddingLike,
        ids: ArrayLike,
        names: Sequence[str] | None = None,
        uncertainty: ArrayLike | None = None,
    ) -> None:
        """Adds items.

        Args:
            gallery_embeddings: N embeddings of the gallery's kind and dimension.
            ids: N distinct whole numbers ≥ 0 that are free.
            names: N strings if the collection has names, else None.
            uncertainty: `(N,)`; None takes `zoo.embeddings.uncertainty`.

        Raises:
            ValueError: if they do not fit, or an id is taken. Nothing has then been added.
        """
        given = (gallery_embeddings, ids, names, uncertainty)
        arrays, ids, *beside = fields.checked(self.description, *given)
        assign_ids(ids, len(ids), self._rows.held(ids), np.iinfo(np.int64).max)
        for part in parts(np.arange(len(ids)), self._rows.items_at_once):
            chunk = [None if values is None else values[part] for values in (ids, *beside)]
            rows = fields.rows(self.description, take(arrays, part), *chunk)
            self._rows.insert(rows)

    def remove(self, ids: ArrayLike) -> None:
        """Removes items.

        Args:
            ids: of items in the collection, each once.

        Raises:
            ValueError: if one is not there. Nothing has then been removed.
        """
        asked = np.atleast_1d(np.asarray(ids)).astype(np.int64)
        self._rows.delete(held_ids(ids, self._rows.held(asked)))

    def __len__(self) -> int:
        return self._rows.count("element == 0" if self._is_set else "")

    def search(
        self,
        queries: EmbeddingLike,
        k: int,
        max_uncertainty: float | None = None,
        candidates: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best k items of every query, as `Index.search` returns them.

        Args:
            queries: Q embeddings, a dict of arrays or what `encode_*` returned.
            k: how many, from 1 to 16,384; there may be fewer in the collection.
            max_uncertainty: leave out items that are less sure than that.
            candidates: of sets, how many rows every element finds, by default 200.

        Returns:
            `(scores, ids)`, float32 and int64 `(Q, k)`, the best first, ties by id. Where fewer
            than k items are found the rest is NaN and −1.

        Raises:
            ValueError: if the queries do not fit the gallery, k or `max_uncertainty` is no such
                number, or candidates are given for anything but sets.
        """
        queries = as_arrays(queries, "queries")
        plan.check_queries(self.description, self.similarity, queries)
        if candidates is not None and not self._is_set:
            raise ValueError(f"`candidates` must be None but for sets; received {candidates}")
        wanted = max(k, candidates or self.description["candidates"] or 0)
        if k != int(k) or not 1 <= k <= wanted <= MOST:
            raise ValueError(f"`k` and `candidates` must be from 1 to {MOST:,}; received {wanted}")
        where = self._filter(max_uncertainty)
        if self._is_set:
            return self._ranked_search(queries, int(k), where, int(wanted))
        values, ids = self._nearest(queries, int(k), where)
        scores = self._space.scores(values, queries, self._score)
        return best(scores, ids, int(k), units.least_first(self.similarity))

    def _ranked_search(self, queries, k, where, candidates):
        """Sets, a few queries at a time: what their elements find, ranked by the similarity."""
        count, ascending = length(queries), units.least_first(self.similarity)
        scores, ids = np.full((count, k), np.nan, np.float32), np.full((count, k), -1)
        for part in parts(np.arange(count), _SETS):
            own = take(queries, part)
            keys = self._nearest(own, candidates, where)[1]
            items = np.where(keys < 0, -1, keys // self._size)
            items = unique_candidates(by_query(own, items))
            held = np.unique(items[items >= 0])
            if len(held):
                rows = np.where(items < 0, -1, np.searchsorted(held, items))
                found = self._reranker.scores(own, self._rows.sets(held), rows)
                scores[part], ids[part] = best(found, items, k, ascending)
        return scores, ids

    def _nearest(self, queries, k, where):
        rows = np.ascontiguousarray(self._space.queries(queries), np.float32)
        return self._rows.nearest(rows, k, where, self.search_params)

    def _filter(self, max_uncertainty):
        if max_uncertainty is None:
            return ""
        if self.description["embedding"] == POINT:
            raise ValueError("`max_uncertainty` must be None: points have no uncertainty")
        if not np.isfinite(max_uncertainty):
            raise ValueError(f"`max_uncertainty` must be finite; received {max_uncertainty}")
        return f"uncertainty <= {float(np.float32(max_uncertainty))!r}"
