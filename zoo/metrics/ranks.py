"""The positives of a query, and their ranks by counting; ties count against the model."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from zoo.metrics.blocks import as_similarity, row_blocks


class MatrixRelevance:
    """Positives from a boolean `(N, M)` matrix, dense or scipy sparse. Raises ValueError if it is
    not a matrix of zeros and ones."""

    def __init__(self, matrix, unreachable=None):
        if not sparse.issparse(matrix):
            matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise ValueError(f"`relevance` must be a matrix; received shape {matrix.shape}")
        values = matrix.data if sparse.issparse(matrix) else matrix
        if matrix.dtype != bool and not ((values == 0) | (values == 1)).all():
            raise ValueError("`relevance` must be boolean; received values other than 0 and 1")
        self._matrix = sparse.csr_array(matrix, dtype=bool, copy=True)
        self._matrix.eliminate_zeros()
        self._matrix.sum_duplicates()
        self.shape = matrix.shape
        self.unreachable = (
            np.zeros(self.shape[0], int) if unreachable is None else np.asarray(unreachable)
        )

    def positives(self, query):
        """The gallery positions that are right for the query, `(R,)`."""
        start, stop = self._matrix.indptr[query : query + 2]
        return self._matrix.indices[start:stop]

    def transposed(self):
        """Gallery and queries exchanged."""
        return MatrixRelevance(self._matrix.T)

    def restricted(self, queries, gallery):
        """Some queries and a gallery of some items; positives outside of it do not count."""
        return MatrixRelevance(self._matrix[queries][:, gallery])


class LabelRelevance:
    """Positives are the gallery items that carry the query's label, an integer or a string: the
    matrix `query_labels[:, None] == gallery_labels[None, :]`, which is never in memory.

    ```python
    zoo.metrics.LabelRelevance(["cat", "dog"], ["dog", "cat", "cat"]).positives(0)  # [1, 2]
    ```
    """

    def __init__(self, query_labels: ArrayLike, gallery_labels: ArrayLike):
        self._queries = _labels(query_labels, "query_labels")
        self._gallery = _labels(gallery_labels, "gallery_labels")
        self.shape = (len(self._queries), len(self._gallery))
        self.unreachable = np.zeros(self.shape[0], int)
        self._order = np.argsort(self._gallery, kind="stable")
        ordered = self._gallery[self._order]
        self._first = np.searchsorted(ordered, self._queries, side="left")
        self._last = np.searchsorted(ordered, self._queries, side="right")

    def positives(self, query: int) -> np.ndarray:
        """The gallery positions that are right for the query, `(R,)`."""
        return self._order[self._first[query] : self._last[query]]

    def transposed(self) -> "LabelRelevance":
        """Gallery and queries exchanged."""
        return LabelRelevance(self._gallery, self._queries)


class HammingRelevance:
    """Positives are the items whose label vector is at most `threshold` labels away."""

    def __init__(self, labels, queries, gallery, threshold):
        # Few of the label vectors differ, so distances are taken between the distinct ones.
        packed = np.packbits(labels, axis=1)
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        codes = labels[first].astype(np.float32)
        size = codes.sum(axis=1)
        distance = size[:, None] + size[None, :] - 2 * codes @ codes.T
        self._set(inverse[queries], inverse[gallery], distance <= threshold)

    def _set(self, queries, gallery, near):
        """Sets `near`, bool `(codes, codes)`, and the code of each query `(Q,)` and item `(N,)`."""
        self._queries, self._gallery, self._near = queries, gallery, near
        self.shape = (len(queries), len(gallery))
        self.unreachable = np.zeros(self.shape[0], int)

    def positives(self, query):
        """The gallery positions that are right for the query, `(R,)`."""
        return np.flatnonzero(self._near[self._queries[query]][self._gallery])

    def transposed(self):
        """Gallery and queries exchanged."""
        other = object.__new__(HammingRelevance)
        other._set(self._gallery, self._queries, self._near)
        return other


def as_relevance(relevance, shape=None):
    """A relevance object of a matrix, or the object itself. Raises ValueError if its shape is not
    `shape`."""
    if not isinstance(relevance, (MatrixRelevance, LabelRelevance, HammingRelevance)):
        relevance = MatrixRelevance(relevance)
    if shape is not None and tuple(relevance.shape) != tuple(shape):
        raise ValueError(
            "`relevance` must have the shape of `similarity` (queries, gallery), "
            f"{tuple(shape)}; received {tuple(relevance.shape)}"
        )
    return relevance


def _labels(labels, name):
    """Labels as an array `(n,)`; a ValueError of another shape."""
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(f"`{name}` must be one label an item; received shape {labels.shape}")
    return labels


# Up to here one pass over the row for each positive is cheaper than sorting the row's values.
COUNTING_LIMIT = 32


@dataclasses.dataclass
class QueryRanks:
    """Ranks of the positives of each query. Arrays are `(N,)`, one entry a query.

    ```python
    ranks = zoo.metrics.rank_queries(np.eye(3), np.eye(3, dtype=bool))
    ranks.best_rank  # [1, 1, 1]
    ```

    Attributes:
        num_positives: R, the right answers of the query.
        best_rank: 1-based rank of its best positive; the gallery's size + 1 if it has none there.
        r_precision: share of positives among the first R.
        average_precision_at_r: mean over the first R ranks of the precision at each rank that
            holds a positive (0 at the others).

    Ties: a positive ranks below every other item of the same similarity that is not one, so a
    model that gives all pairs one similarity finds nothing. Tied positives are interchangeable.
    """

    num_positives: np.ndarray
    best_rank: np.ndarray
    r_precision: np.ndarray
    average_precision_at_r: np.ndarray

    @property
    def has_positive(self) -> np.ndarray:
        """Queries that enter the means; the others have no right answer."""
        return self.num_positives > 0

    def hits(self, k: int) -> np.ndarray:
        """Whether at least one positive is among the first `k`, boolean `(N,)`."""
        if k != int(k) or k < 1:
            raise ValueError(f"`k` must be a whole number of at least 1; received {k}")
        return self.best_rank <= k

    def mean(self, values: ArrayLike) -> float:
        """Mean over the queries that have a positive, a float. Raises ValueError if none has
        one."""
        if not self.has_positive.any():
            raise ValueError(
                "`relevance` must give at least one query a positive; "
                f"received none for {len(self.num_positives)} queries"
            )
        return float(np.mean(values[self.has_positive]))


def rank_queries(similarity: Any, relevance: Any) -> QueryRanks:
    """Ranks the positives of every query: `QueryRanks`. Raises ValueError if the shapes differ or a
    similarity is NaN.

    ```python
    rank_queries([[0.9, 0.1], [0.8, 0.3]], np.eye(2, dtype=bool)).best_rank  # [1, 2]
    ```

    Args:
        similarity: `(N, M)` array or `PairwiseSimilarity`; rows are queries, higher is better.
        relevance: `(N, M)` booleans, dense or scipy sparse, or one of `zoo.metrics.ranks`.
    """
    return rank_queries_many(similarity, [relevance])[0]


def rank_queries_many(similarity, relevances):
    """`rank_queries` for several relevances, with one pass over the similarities."""
    similarity = as_similarity(similarity)
    relevances = [as_relevance(relevance, similarity.shape) for relevance in relevances]
    num_queries, num_items = similarity.shape
    results = [_empty(num_queries, num_items) for _ in relevances]
    for start, rows in row_blocks(similarity):
        ordered = {}  # sorted rows, made at first use and shared by all relevances
        for relevance, result in zip(relevances, results, strict=True):
            for offset, scores in enumerate(rows):
                query = start + offset
                positives = relevance.positives(query)
                size = len(positives) + relevance.unreachable[query]
                result.num_positives[query] = size
                if not len(positives):
                    continue
                if len(positives) > COUNTING_LIMIT and offset not in ordered:
                    ordered[offset] = np.sort(scores)
                ranks = leading_ranks(scores, positives, size, ordered.get(offset))
                result.best_rank[query] = ranks[0]
                leading = ranks[ranks <= size]
                result.r_precision[query] = len(leading) / size
                precision = np.arange(1, len(leading) + 1) / leading
                result.average_precision_at_r[query] = precision.sum() / size
    return results


def leading_ranks(scores, positives, limit, ordered=None):
    """Ascending 1-based ranks of the best positive and of all that are among the first `limit`."""
    positive_scores = np.sort(scores[positives])
    if ordered is None:
        at_least = np.array([np.count_nonzero(scores >= value) for value in positive_scores[::-1]])
    else:
        # Below the `limit`-th largest value there are already `limit` better items.
        threshold = ordered[max(len(ordered) - limit, 0)]
        first = np.searchsorted(positive_scores, threshold, side="left")
        leading = positive_scores[min(first, len(positive_scores) - 1) :][::-1]
        at_least = len(ordered) - np.searchsorted(ordered, leading, side="left")
    order = np.arange(1, len(at_least) + 1)
    positives_at_least = len(positive_scores) - np.searchsorted(
        positive_scores, positive_scores[::-1][: len(at_least)], side="left"
    )
    return at_least - positives_at_least + order


def _empty(num_queries, num_items):
    """`QueryRanks` to fill, with the best rank behind all items."""
    return QueryRanks(
        num_positives=np.zeros(num_queries, int),
        best_rank=np.full(num_queries, num_items + 1),
        r_precision=np.zeros(num_queries),
        average_precision_at_r=np.zeros(num_queries),
    )
