"""What a search says of its queries: the best scores, mean and variance, and how answers agree."""

import dataclasses
import functools

import numpy as np

from halo_search.embeddings import checks

DEPTH = 20  # best scores of a query that are read
RANKS = (5, 10)  # of the agreement
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)  # of the scores beyond the best 20
REACH = 6.0  # standard deviations below the mean that count
_BLOCK = 32  # queries at once, whose vectors stay in the processor's cache
_SAME = 1 - 1e-4  # cosine of an item and itself in half precision is above this


@dataclasses.dataclass(frozen=True)
class QueryScores:
    """The scores of queries over a gallery, as far as a search knows them."""

    top: np.ndarray  # (queries, R), the best scores, best first, higher is better; 20 are kept
    mean: np.ndarray  # (queries,), over the whole gallery, as of `GalleryMoments`
    variance: np.ndarray  # (queries,), likewise, divided by the number of items
    size: int | np.ndarray  # items in the gallery, or (queries,) numbers
    agreement: np.ndarray | None = None  # (queries, ranks), of `agreement`; None without vectors
    is_copy: np.ndarray | None = None  # (queries, R), answers that are copies of one before

    def __post_init__(self):
        top = checks.matrix(self.top, "top")
        mean = checks.vector(self.mean, "mean", len(top))
        variance = checks.vector(self.variance, "variance", len(top))
        for name, value in (("top", top[:, :DEPTH]), ("mean", mean), ("variance", variance)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "size", np.broadcast_to(self.size, mean.shape))
        if self.agreement is not None and not np.shape(self.agreement)[-1]:
            object.__setattr__(self, "agreement", None)  # of fewer answers than any rank
        if self.is_copy is not None:
            object.__setattr__(self, "is_copy", np.asarray(self.is_copy)[:, :DEPTH])

    def __len__(self):
        return len(self.top)

    @property
    def different(self):
        """`(queries,)`, how many of the best scores are of no copy."""
        depth = self.top.shape[1]
        return np.full(len(self), depth) if self.is_copy is None else (~self.is_copy).sum(axis=1)

    @functools.cached_property
    def second(self):
        """`(queries,)`, the score of the second answer; copies of the first are passed over."""
        # A picture that is there twice is no rival of itself. Without others: the last score.
        if self.is_copy is None or not self.is_copy.any():
            return self.top[:, min(1, self.top.shape[1] - 1)]
        others = np.where(self.is_copy[:, 1:], self.top[:, -1:], self.top[:, 1:])
        return others.max(axis=1, initial=-np.inf) if others.shape[1] else self.top[:, 0]

    def total(self, function):
        """The sum over the gallery of a function of scores, `(queries,)`, where `function` maps
        `(queries, n)` scores to as many numbers. The best scores are exact; the others are taken
        for a normal distribution cut off at the lowest of these, by Gauss–Legendre quadrature."""
        top = self.top
        rest = self.size - top.shape[1]
        some = np.maximum(rest, 1.0)
        middle = (self.size * self.mean - top.sum(axis=1)) / some
        squares = self.size * (self.variance + self.mean**2) - (top**2).sum(axis=1)
        deviation = np.sqrt(np.maximum(squares / some - middle**2, 1e-12))
        end = np.minimum((top[:, -1] - middle) / deviation, REACH)
        half = np.maximum((end + REACH) / 2, 1e-6)
        z = -REACH + half[:, None] * (NODES + 1)
        density = WEIGHTS * np.exp(-0.5 * z**2)
        values = function(np.minimum(middle[:, None] + deviation[:, None] * z, top[:, -1:]))
        beyond = rest * (density * values).sum(axis=1) / density.sum(axis=1)
        return function(top).sum(axis=1) + beyond

    @classmethod
    def of_matrix(cls, similarity, keep=None, vectors=None, copies=None):
        """The scores of full rows, of which `keep` take part; `vectors` `(items, dim)` of the
        search space and `copies` are for the agreement of answers."""
        rows = checks.matrix(similarity, "similarity")
        keep = np.ones(rows.shape, bool) if keep is None else np.asarray(keep, bool)
        size = keep.sum(axis=1)
        if size.min() < 2:
            raise ValueError(
                f"a query must be compared with at least two items; received {size.min()}"
            )
        mean, variance = rows.mean(axis=1, where=keep), rows.var(axis=1, where=keep)
        rows = np.where(keep, rows, -np.inf)
        best = best_first(rows, min(DEPTH, int(size.min())))
        top = np.take_along_axis(rows, best, axis=1)
        if vectors is None:
            return cls(top, mean, variance, size)
        vectors = np.asarray(vectors)
        beside = agreement(vectors[best], vectors.mean(axis=0), copies)
        return cls(top, mean, variance, size, *beside)

    @classmethod
    def of(cls, similarity):
        """`similarity` itself if it is a `QueryScores`, else that of a matrix."""
        return similarity if isinstance(similarity, cls) else cls.of_matrix(similarity)

    @classmethod
    def concatenate(cls, parts):
        """The queries of several `QueryScores`, one part after the other. Each keeps as many best
        scores as the part that has fewest."""
        depth = min(part.top.shape[1] for part in parts)
        widths = {"top": depth, "agreement": len(reached_ranks(depth)), "is_copy": depth}

        def joint(name):
            values = [getattr(part, name) for part in parts]
            if any(one is None for one in values):
                return None
            return np.concatenate([v[:, : widths[name]] if name in widths else v for v in values])

        return cls(*map(joint, ("top", "mean", "variance", "size", "agreement", "is_copy")))

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


def dense(relevance, shape, name="relevance", like="of the shape of `similarity`"):
    """Relevance as a boolean array of a given shape; a ValueError if it differs."""
    relevance = relevance.toarray() if hasattr(relevance, "toarray") else np.asarray(relevance)
    if relevance.shape != tuple(shape):
        raise ValueError(f"`{name}` must be {like}, {tuple(shape)}; received {relevance.shape}")
    return relevance.astype(bool)


def agreement(answers, centre, copies=None):
    """`(agreement, is_copy)` of answers `(queries, R, dim)`: the mean cosine `(queries, ranks)` of
    the first and answers 2 … r, for r = 5 and 10 as far as R reaches; and copies of one before."""
    # The neighbours of a right answer are of its kind, and a wrong one stands alone. Vectors are
    # seen from the gallery's mean `centre`, so that what all items share does not count. Copies,
    # answers nearer than the cosine `copies` to one before them, are passed over: a picture that is
    # there five times does not agree with itself. Where all are copies it is `copies` itself.
    answers, centre = np.asarray(answers), np.asarray(centre)
    # Squares and differences of small whole numbers and of half precision do not fit in them.
    answers = answers.astype(np.result_type(answers.dtype, np.float32), copy=False)
    reached = reached_ranks(answers.shape[1])
    centre = centre.astype(answers.dtype, copy=False)
    before = np.tri(answers.shape[1], k=-1, dtype=bool)  # the column's answer before the row's
    found = np.empty((len(answers), len(reached)))
    is_copy = np.zeros(answers.shape[:2], bool)
    for start in range(0, len(answers), _BLOCK):
        rows = slice(start, start + _BLOCK)
        about = centre if centre.ndim == 1 else centre[rows, None]
        vectors = answers[rows] - about
        beside = cosines(vectors[:, :1] if copies is None else vectors, vectors)
        if copies is not None:
            is_copy[rows] = ((beside > copies) & before).any(axis=2)
        found[rows] = _means(beside[:, 0, 1:], reached, is_copy[rows, 1:], copies)
    if not np.isfinite(found).all():
        raise ValueError("`answers` must be finite; received NaN or infinities")
    return found, is_copy


def _means(beside, reached, is_copy, copies):
    """The means over the first r − 1 of `(queries, R − 1)` cosines that are no copies."""
    if not reached:
        return np.empty((len(beside), 0))
    if not is_copy.any():
        ranks = np.array(reached)
        return beside.cumsum(axis=1, dtype=np.float64)[:, ranks - 2] / (ranks - 1)
    order = np.argsort(is_copy, axis=1, kind="stable")  # copies last
    sums = np.take_along_axis(np.where(is_copy, 0.0, beside), order, axis=1).cumsum(axis=1)
    some = np.maximum((~is_copy).sum(axis=1), 1)
    means = np.stack([sums[:, rank - 2] / np.minimum(some, rank - 1) for rank in reached], axis=1)
    means[is_copy.all(axis=1)] = copies
    return means


def cosines(first, second):
    """Of each of `(queries, n, dim)` and each of `(queries, R, dim)`: `(queries, n, R)`."""
    lengths = [np.sqrt(np.einsum("qrd,qrd->qr", one, one)) for one in (first, second)]
    products = np.matmul(first, second.transpose(0, 2, 1))
    found = products / np.maximum(lengths[0][..., None] * lengths[1][:, None], 1e-12)
    return np.minimum(np.maximum(found, -1.0), 1.0)  # rounding must not leave the range


def copy_threshold(vectors, share=0.999):
    """The cosine about the mean from which two items are copies of one another: what the nearest
    neighbours of a `share` of these `(items, dim)`, which are different, do not exceed."""
    units = vectors - vectors.mean(axis=0)
    units = units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    nearest = np.empty(len(units))
    for start in range(0, len(units), 1024):
        block = units[start : start + 1024] @ units.T
        # An item itself, which may be given several times.
        nearest[start : start + 1024] = np.where(block < _SAME, block, -1.0).max(axis=1)
    return float(np.quantile(nearest, share))


@functools.cache
def reached_ranks(depth):
    """Those of `RANKS` that the best `depth` answers reach."""
    return tuple(rank for rank in RANKS if rank <= depth)
