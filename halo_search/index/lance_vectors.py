"""Vectors in LanceDB's table of an index: how they are stored, found and read again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from halo_search.embeddings.spaces import SearchSpace
from halo_search.errors import require
from halo_search.index.columns import refuse_missing
from halo_search.index.lance_store import first_line

require("lancedb", extra="large")
pa = require("pyarrow", extra="large")

from lancedb.index import BTree, IvfPq  # noqa: E402

FEW = 50_000  # items up to which every one is compared
_MULTIPLE = 8  # of the stored dimension: LanceDB codes any other as one piece, and finds little
_SUB_VECTOR = 4  # numbers that one byte of a code stands for
_LONGEST = 1.25  # squared length of a vector whose products are compared: 1, and a hub's r²/4
_IDS = 2000  # in a condition
_ITEMS = 65536  # read at once


class TableVectors:
    """The column `vector` of a table with a column `id`, for vectors of a search space.

    LanceDB searches by distance alone. Where inner products rank, each item has one more number, so
    that distances rank as the products do (Bachrach et al., "Speeding Up the Xbox Recommender
    System", RecSys 2014). Zeros fill a stored vector up to a multiple of eight numbers.

    Args:
        space: the `SearchSpace`.
        dim: the numbers of a vector of the space.
    """

    def __init__(self, space: SearchSpace, dim: int):
        self._dim = dim
        self._ranks_by_product = space.metric == "inner_product"
        self._width = -(-(dim + self._ranks_by_product) // _MULTIPLE) * _MULTIPLE

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return pa.list_(pa.float32(), self._width)

    def of_items(self, vectors: np.ndarray) -> pa.Array:
        """Vectors of items `(n, dim)` as values of the column."""
        stored = self._filled(vectors)
        if self._ranks_by_product:
            rest = _LONGEST - np.einsum("nd,nd->n", vectors, vectors)
            stored[:, self._dim] = np.sqrt(np.maximum(rest, 0.0))
        return pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), self._width)

    def _filled(self, vectors):
        """`(n, dim)` vectors with zeros behind them, `(n, width)` float32."""
        stored = np.zeros((len(vectors), self._width), np.float32)
        stored[:, : self._dim] = vectors
        return stored

    def nearest(
        self, table: Any, size: int, vectors: np.ndarray, count: int, where: str | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nearest items of some queries, of a large table approximately.

        Args:
            table: LanceDB's.
            size: the items of the table.
            vectors: of Q queries, `(Q, dim)`.
            count: items per query.
            where: an SQL condition on the table's columns, or None.
        Returns:
            `(item vectors, rows, ids)`: `(n, dim)`, and per query the row of each item in these and
            its id, `(Q, count)`; −1 where there are fewer.
        Raises:
            ValueError: if the condition cannot be read.
        """
        items = self._search(table, size, vectors, count, where)
        query = np.zeros(len(items), np.int64)
        if "query_index" in items.column_names:
            items = items.sort_by("query_index")
            query = items["query_index"].to_numpy()
        place = np.arange(len(items)) - np.searchsorted(query, query)
        rows, ids = np.full((2, len(vectors), count), -1)
        rows[query, place], ids[query, place] = np.arange(len(items)), items["id"].to_numpy()
        return self._matrix(items["vector"]), rows, ids

    def _search(self, table, size, vectors, count, where):
        """LanceDB's answer to some queries, one row per query and item."""
        probes = max(20, size // 60_000)
        search = table.search(self._filled(vectors), "vector")
        search = search.distance_type("l2").limit(count).select(["id", "vector", "_distance"])
        search = search.minimum_nprobes(probes).maximum_nprobes(0 if where else probes)
        search = search.refine_factor(5 if size < 1_000_000 else 10)
        try:
            return (search.where(where, prefilter=True) if where else search).to_arrow()
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"`where` {where!r}: {first_line(error)}") from error

    def by_ids(self, table: Any, ids: np.ndarray) -> np.ndarray:
        """The vectors of items by their sorted ids, `(n, dim)`. Raises ValueError for an
        unknown id."""
        parts = [np.empty((0, self._dim), np.float32)]
        for some in portions(ids):
            items = table.search().where(among(some)).select(["id", "vector"])
            items = items.limit(len(some)).to_arrow()
            refuse_missing(np.setdiff1d(some, items["id"].to_numpy()))
            order = np.argsort(items["id"].to_numpy())
            parts.append(self._matrix(items["vector"])[order])
        return np.concatenate(parts)

    def every(self, table: Any) -> Iterator[np.ndarray]:
        """Yields the vectors of all items, a part `(n, dim)` at a time."""
        for batch in table.search().select(["vector"]).to_batches(_ITEMS):
            yield self._matrix(batch["vector"])

    def _matrix(self, column):
        """A column of stored vectors as `(rows, dim)` float32."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [chunk.flatten().to_numpy() for chunk in chunks]
        stored = np.concatenate([np.empty(0, np.float32), *parts]).reshape(-1, self._width)
        return stored[:, : self._dim]

    def train(self, table: Any) -> None:
        """Trains LanceDB's index of vectors where there are many items and most of them are new."""
        known = {index.columns[0]: index.name for index in table.list_indices()}
        size = new = table.count_rows()
        if "vector" in known:
            new = table.index_stats(known["vector"]).num_unindexed_rows
        if size > FEW and new > size / 2:
            config = IvfPq(distance_type="l2", num_sub_vectors=self._width // _SUB_VECTOR)
            table.create_index("vector", config=config)
            table.create_index("id", config=BTree())


def portions(ids: np.ndarray) -> Iterator[np.ndarray]:
    """Yields ids `(n,)` in parts that one condition may have."""
    for start in range(0, len(ids), _IDS):
        yield ids[start : start + _IDS]


def among(ids: np.ndarray) -> str:
    """The SQL condition of some ids."""
    return f"id IN ({', '.join(map(str, ids.tolist()))})"
