"""What a search says of its queries: the best scores, mean and variance, and agreement."""

import dataclasses
import functools

import numpy as np

from zoo.confidence import checks
from zoo.confidence.answer_agreement import beside_the_first, reached_ranks

DEPTH = 20  # best scores of a query that are read, as many as the deepest feature needs
FOLLOWING = (2, 5, 10, 20)  # ranks of the answers whose scores are set beside the first one's


@dataclasses.dataclass(frozen=True)
class QueryScores:
    """The scores of queries over a gallery, as far as a search knows them.

    ```python
    similarity = np.random.default_rng(0).normal(size=(5, 100))  # queries × gallery
    zoo.confidence.QueryScores.of_matrix(similarity).top[:, 0]  # the best of each query
    ```

    A flat search, a graph and an inverted file give the best scores only. Mean and variance over
    the whole gallery come from `GalleryMoments`, without a scan. `QueryScores.of_matrix` takes the
    same numbers from full score rows and reads no others, so that a calibration on full rows gives
    the same probabilities in front of an index.

    Args:
        top: `(queries, R)`, the best scores of each query, best first, higher is better. Of more
            than 20 the first 20 are kept.
        mean: `(queries,)`, of the query's scores over the whole gallery.
        variance: `(queries,)`, likewise, divided by the number of items.
        size: number of items in the gallery, or `(queries,)` numbers.
        agreement: `(queries, ranks)`, see `zoo.confidence.agreement`, or None where the answers'
            vectors are not known.
        is_copy: `(queries, R)` booleans, answers that are copies of one before; None for none.

    Raises:
        ValueError: if shapes do not fit, a number is not finite, scores are not sorted, a
            variance is negative or `size` is below R.
    """

    top: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    size: int | np.ndarray
    agreement: np.ndarray | None = None
    is_copy: np.ndarray | None = None

    def __post_init__(self):
        top = checks.matrix(self.top, "top")
        mean = checks.vector(self.mean, "mean", len(top))
        variance = checks.vector(self.variance, "variance", len(top))
        size = np.asarray(self.size)
        if (variance < 0).any():
            raise ValueError(f"`variance` must not be negative; received {variance.min()}")
        if (top[:, 1:] > top[:, :-1]).any():
            raise ValueError("`top` must be sorted, best score first")
        if size.shape not in ((), mean.shape) or (size < top.shape[1]).any():
            raise ValueError(
                f"`size` must be the number of items, at least {top.shape[1]}; received {self.size}"
            )
        for name, value in (("top", top[:, :DEPTH]), ("mean", mean), ("variance", variance)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "size", np.broadcast_to(size, mean.shape))
        if self.agreement is not None and not np.shape(self.agreement)[-1]:
            object.__setattr__(self, "agreement", None)  # of fewer answers than any rank
        if self.agreement is not None:
            values = checks.matrix(self.agreement, "agreement")
            expected = (len(top), len(reached_ranks(self.top.shape[1])))
            if values.shape != expected:
                raise ValueError(
                    f"`agreement` must be of shape {expected}; received {values.shape}"
                )
            object.__setattr__(self, "agreement", values)
        if self.is_copy is not None:
            copies = checks.truths(np.ravel(self.is_copy), "is_copy", top.size)
            object.__setattr__(self, "is_copy", copies.reshape(top.shape)[:, :DEPTH])

    def __len__(self):
        return len(self.top)

    @property
    def different(self):
        """`(queries,)`, how many of the best scores are of no copy."""
        depth = self.top.shape[1]
        return np.full(len(self), depth) if self.is_copy is None else (~self.is_copy).sum(axis=1)

    @functools.cached_property
    def following(self):
        """`(queries, ranks)`, the scores of answers 2, 5, 10 and 20, as far as R reaches.

        Copies of an answer before are passed over, as of `agreement`: a picture that the gallery
        holds twice is no rival of itself. Where too few others are left it is the last score.
        """
        others = self.top[:, 1:]
        if self.is_copy is not None and self.is_copy.any():
            is_copy = self.is_copy[:, 1:]
            others = np.where(is_copy, self.top[:, -1:], others)
            order = np.argsort(is_copy, axis=1, kind="stable")  # copies last
            others = np.take_along_axis(others, order, axis=1)
        return others[:, [rank - 2 for rank in FOLLOWING if rank <= self.top.shape[1]]]

    @classmethod
    def of_matrix(cls, similarity, keep=None, vectors=None, copies=None):
        """The scores of full rows.

        Args:
            similarity: `(queries, items)`, higher is better.
            keep: `(queries, items)` booleans, the items that take part; None for all.
            vectors: `(items, dim)` of the gallery in its search space, for the agreement of
                answers; None for none.
            copies: of `zoo.confidence.agreement`.

        Raises:
            ValueError: if the matrix is not finite, a query keeps fewer than two items, or the
                vectors are not as many as the items.
        """
        rows = checks.matrix(similarity, "similarity")
        if keep is None:
            size = np.full(len(rows), rows.shape[1])
            mean, variance = rows.mean(axis=1), rows.var(axis=1)
        else:
            keep = np.asarray(keep, bool)
            if keep.shape != rows.shape:
                raise ValueError(f"`keep` must be of shape {rows.shape}; received {keep.shape}")
            size = keep.sum(axis=1)
            some = np.maximum(size, 1)
            mean = np.where(keep, rows, 0.0).sum(axis=1) / some
            variance = np.where(keep, (rows - mean[:, None]) ** 2, 0.0).sum(axis=1) / some
            rows = np.where(keep, rows, -np.inf)
        if size.min() < 2:
            raise ValueError(
                f"a query must be compared with two items at least; received {size.min()}"
            )
        best = best_first(rows, min(DEPTH, int(size.min())))
        top = np.take_along_axis(rows, best, axis=1)
        if vectors is None:
            return cls(top, mean, variance, size)
        vectors = np.asarray(vectors)
        if vectors.ndim != 2 or len(vectors) != rows.shape[1]:
            raise ValueError(
                f"`vectors` must be ({rows.shape[1]}, dim), one an item; received {vectors.shape}"
            )
        beside = beside_the_first(vectors[best], vectors.mean(axis=0), copies)
        return cls(top, mean, variance, size, *beside)

    @classmethod
    def of(cls, similarity):
        """`similarity` itself if it is a `QueryScores`, else that of a matrix."""
        return similarity if isinstance(similarity, cls) else cls.of_matrix(similarity)

    @classmethod
    def concatenate(cls, parts):
        """The queries of several, one after the other; of each as many best scores as of all."""
        depth = min(part.top.shape[1] for part in parts)
        agreements = [part.agreement for part in parts]
        if any(part is None for part in agreements):
            joint = None
        else:
            ranks = len(reached_ranks(depth))
            joint = np.concatenate([part[:, :ranks] for part in agreements])
        copies = [part.is_copy for part in parts]
        is_copy = None
        if not any(part is None for part in copies):
            is_copy = np.concatenate([part[:, :depth] for part in copies])
        return cls(
            np.concatenate([part.top[:, :depth] for part in parts]),
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("mean", "variance", "size")
            ),
            joint,
            is_copy,
        )

    def take(self, queries):
        """Some of the queries."""
        fields = (self.top, self.mean, self.variance, self.size, self.agreement, self.is_copy)
        return QueryScores(*(None if field is None else field[queries] for field in fields))


def best_first(rows, depth=DEPTH):
    """The places of the best scores of each row `(queries, items)`, best first, ties in order."""
    depth = min(depth, rows.shape[1])
    best = np.sort(np.argpartition(-rows, depth - 1, axis=1)[:, :depth], axis=1)
    order = np.argsort(-np.take_along_axis(rows, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def without_matches(similarity, relevance, vectors=None):
    """The scores of a world in which nothing matches: every query's own matches are taken out.

    Args:
        similarity: `(queries, items)`, higher is better.
        relevance: `(queries, items)` booleans, dense or scipy sparse.
        vectors: as of `QueryScores.of_matrix`.

    Returns:
        A `QueryScores`, whose confidences `absence_p_values` takes.

    Raises:
        ValueError: if shapes differ, or fewer than two items of a query are left.
    """
    return QueryScores.of_matrix(similarity, ~dense(relevance, np.shape(similarity)), vectors)


def dense(relevance, shape, name="relevance", like="of the shape of `similarity`"):
    """Relevance as a boolean array of a given shape.

    Raises:
        ValueError: if the shape differs.
    """
    relevance = relevance.toarray() if hasattr(relevance, "toarray") else np.asarray(relevance)
    if relevance.shape != tuple(shape):
        raise ValueError(f"`{name}` must be {like}, {tuple(shape)}; received {relevance.shape}")
    return relevance.astype(bool)
