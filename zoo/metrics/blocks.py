"""Similarity matrices that are read by rows and need not be in memory as a whole."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from zoo.embeddings import Embedding, as_embedding

MATRIX_BYTES = 2**30  # largest matrix that is kept, since it is read several times
BLOCK_BYTES = 2**26  # of one block of rows, large enough for BLAS


class _Rows:
    """A matrix `(N, M)` of which a block of rows is made at a time."""

    values_per_pair = 1  # the numbers behind one similarity

    def in_memory(self) -> Any:
        """The computed matrix if it fits into 1 GiB (COCO's takes half), else itself."""
        if 4 * self.shape[0] * self.shape[1] > MATRIX_BYTES:
            return self
        matrix = None
        for start, rows in row_blocks(self):
            if matrix is None:
                matrix = np.empty(self.shape, rows.dtype)
            matrix[start : start + len(rows)] = rows
        return self if matrix is None else SimilarityMatrix(matrix)


class SimilarityMatrix(_Rows):
    """An `(N, M)` array of similarities, read in blocks of rows. Raises ValueError if it is not a
    matrix of real numbers."""

    def __init__(self, values, rows=None, columns=None):
        values = values if isinstance(values, np.ndarray) else np.asarray(values)
        if values.ndim != 2:
            raise ValueError(f"`similarity` must be a matrix; received shape {values.shape}")
        try:
            self._dtype = _working_dtype(values.dtype)
        except TypeError as error:
            raise ValueError(
                f"`similarity` must hold real numbers; received dtype {values.dtype}"
            ) from error
        self._values, self._rows, self._columns = values, rows, columns
        self.shape = (
            values.shape[0] if rows is None else len(rows),
            values.shape[1] if columns is None else len(columns),
        )

    def rows(self, start, stop):
        """Rows `start` to `stop`, `(stop − start, M)`, float32 or float64, contiguous."""
        chosen = slice(start, stop) if self._rows is None else self._rows[start:stop]
        block = np.ascontiguousarray(self._values[chosen], self._dtype)
        return block if self._columns is None else np.take(block, self._columns, axis=1)

    def in_memory(self):
        """Itself: it is in memory already."""
        return self

    def take(self, rows, columns):
        """The similarity of a subset of the queries to a subset of the gallery."""
        rows, columns = np.asarray(rows, int), np.asarray(columns, int)
        return SimilarityMatrix(
            self._values,
            rows if self._rows is None else self._rows[rows],
            columns if self._columns is None else self._columns[columns],
        )

    def transposed(self):
        """Gallery and queries exchanged."""
        return SimilarityMatrix(self._values.T, self._columns, self._rows)


class PairwiseSimilarity(_Rows):
    """The similarities of two collections of embeddings, computed a block of rows at a time.

    Every metric takes it in place of an `(N, M)` matrix.

    ```python
    points = {"mean": np.eye(3, dtype="float32")}
    pairs = zoo.metrics.PairwiseSimilarity(points, points, zoo.similarities.cosine)
    pairs.rows(0, 2)  # [[1, 0, 0], [0, 1, 0]]
    ```

    Args:
        images, captions: N and M embeddings, dicts of arrays or what `encode_images` returned.
        similarity: a similarity layer or function, `(images, captions) -> (n, m)`, higher is
            better.
    """

    def __init__(self, images: Embedding, captions: Embedding, similarity: Callable):
        if not callable(similarity):
            raise TypeError(
                f"`similarity` must be a layer or function; received {type(similarity).__name__}"
            )
        images, captions = _arrays(images, "images"), _arrays(captions, "captions")
        if isinstance(similarity, keras.layers.Layer):
            # A layer converts arrays at every call, so the gallery is converted once, here.
            images = {key: ops.convert_to_tensor(value) for key, value in images.items()}
            captions = {key: ops.convert_to_tensor(value) for key, value in captions.items()}
        self._queries, self._gallery = images, captions
        self._similarity = similarity
        self._transposed = False
        self.shape = (_length(images), _length(captions))

    @property
    def values_per_pair(self) -> int:
        """The pairs of samples or of elements behind one similarity."""
        if "elements" in self._queries:
            return self._queries["elements"].shape[1] * self._gallery["elements"].shape[1]
        return getattr(self._similarity, "num_samples", 1) ** 2

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows `start` to `stop`, computed at each call."""
        queries = {key: value[start:stop] for key, value in self._queries.items()}
        if self._transposed:
            block = np.asarray(self._similarity(self._gallery, queries)).T
        else:
            block = np.asarray(self._similarity(queries, self._gallery))
        expected = (min(stop, self.shape[0]) - start, self.shape[1])
        if block.shape != expected:
            raise ValueError(
                f"`similarity` must return one row a query, {expected} here; received {block.shape}"
            )
        return np.ascontiguousarray(block, _working_dtype(block.dtype))

    def take(self, rows: ArrayLike, columns: ArrayLike) -> "PairwiseSimilarity":
        """The similarity of a subset of the queries to a subset of the gallery."""
        return self._with(
            _take(self._queries, rows), _take(self._gallery, columns), self._transposed
        )

    def transposed(self) -> "PairwiseSimilarity":
        """Gallery and queries exchanged."""
        return self._with(self._gallery, self._queries, not self._transposed)

    def _with(self, queries, gallery, transposed):
        """The same similarity of other embeddings."""
        other = object.__new__(PairwiseSimilarity)
        other._queries, other._gallery = queries, gallery
        other._similarity, other._transposed = self._similarity, transposed
        other.shape = (_length(queries), _length(gallery))
        return other


class MeanSimilarity(_Rows):
    """The mean of several similarities of the same images and captions, an ensemble's.

    ```python
    pairs = zoo.metrics.MeanSimilarity([np.eye(3), np.ones((3, 3))])
    zoo.metrics.evaluate_retrieval(pairs, np.eye(3, dtype=bool))["rsum"]  # 600.0
    ```

    Args:
        similarities: `(N, M)` arrays, `PairwiseSimilarity`s or both, of one shape (else a
            ValueError), read a block of rows at a time.
    Reference: DivE (Kim et al., CVPR 2023), section 4.3: two seeds; SGRAF: SAF and SGR.
    """

    def __init__(self, similarities: Sequence):
        self._parts = [as_similarity(similarity) for similarity in similarities]
        shapes = [tuple(part.shape) for part in self._parts]
        if len(set(shapes)) != 1:
            raise ValueError(
                "`similarities` must be one or more of one shape (images, captions); "
                f"received shapes {shapes}"
            )
        self.shape = shapes[0]

    @property
    def values_per_pair(self) -> int:
        """How many numbers stand behind one similarity, of all parts together."""
        return sum(part.values_per_pair for part in self._parts)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows `start` to `stop`, of the mean."""
        total = sum(part.rows(start, stop) for part in self._parts)
        return total / np.float32(len(self._parts))

    def take(self, rows: ArrayLike, columns: ArrayLike) -> "MeanSimilarity":
        """The similarity of a subset of the queries to a subset of the gallery."""
        return MeanSimilarity([part.take(rows, columns) for part in self._parts])

    def transposed(self) -> "MeanSimilarity":
        """Gallery and queries exchanged."""
        return MeanSimilarity([part.transposed() for part in self._parts])


def as_similarity(similarity):
    """A `SimilarityMatrix` of a matrix, or the object itself if it is read by rows already."""
    return similarity if isinstance(similarity, _Rows) else SimilarityMatrix(similarity)


def row_blocks(similarity, block_size=None, name="similarity"):
    """Yields `(start, rows)` over all queries. Raises ValueError if a similarity is NaN, naming the
    first."""
    similarity = as_similarity(similarity)
    num_queries, num_items = similarity.shape
    if block_size is None:
        values = num_items * similarity.values_per_pair
        block_size = max(1, BLOCK_BYTES // (4 * max(values, 1)))
    for start in range(0, num_queries, block_size):
        rows = similarity.rows(start, min(start + block_size, num_queries))
        if rows.size and np.isnan(rows.max()):
            row, column = np.argwhere(np.isnan(rows))[0]
            raise ValueError(
                f"`{name}` must not hold NaN: it has no rank; received one at "
                f"({start + row}, {column})"
            )
        yield start, rows


def _working_dtype(dtype):
    """float32 and float64 stay; half precision widens to float32, whole numbers to float64."""
    if dtype.kind in "iub":
        return np.float64
    working = np.promote_types(dtype, np.float32)
    if working not in (np.float32, np.float64):
        raise TypeError(f"{dtype} is no real number")
    return working


def _arrays(embedding, name):
    """An embedding as a dict of NumPy arrays, without what it lacks."""
    return {
        key: np.asarray(value)
        for key, value in as_embedding(embedding, name).items()
        if value is not None
    }


def _take(embedding, positions):
    """The rows of an embedding at some positions, each part of it."""
    if all(isinstance(value, np.ndarray) for value in embedding.values()):
        return {key: value[positions] for key, value in embedding.items()}
    return {key: ops.take(value, positions, axis=0) for key, value in embedding.items()}


def _length(embedding):
    return len(next(iter(embedding.values())))
