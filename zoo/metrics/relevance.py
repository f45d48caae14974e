"""The positives of a query: from a matrix, from labels, or by a rule."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse


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
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(f"`{name}` must be one label an item; received shape {labels.shape}")
    return labels
