"""Moments of a gallery: mean and variance of any query's scores over all of it, without a scan."""

import dataclasses
import functools

import numpy as np

from halo_search.embeddings.arrays import products

_BLOCK = 4096  # rows that are converted to float64 at once
_SAME = 1e-4  # relative difference of two sums over the same items, in any order


@dataclasses.dataclass(frozen=True)
class GalleryMoments:
    """First and second moments of h = [g, ‖g‖²] over the vectors g of a gallery's search space."""

    # A score is affine in h: −‖q − g‖² = −‖q‖² + aᵀh with a = [2q, −1], and qᵀg = aᵀh with a = [q,
    # 0]. So its mean over the gallery is that function of E h, and its variance is aᵀ Cov(h) a.
    # Sums over parts add up: with S = Σ (h − E h)(h − E h)ᵀ and the difference δ of the means,
    # S = S₁ + S₂ + n₁n₂/(n₁ + n₂) δδᵀ (Chan, Golub and LeVeque, COMPSTAT 1982).

    count: int  # number of items
    mean: np.ndarray  # (dim + 1,), E h
    scatter: np.ndarray  # (dim + 1, dim + 1), S, about the mean

    @classmethod
    def of(cls, vectors):
        """The moments of vectors `(items, dim)`, at least one."""
        total = None
        for start in range(0, len(vectors), _BLOCK):
            block = vectors[start : start + _BLOCK].astype(np.float64)
            h = np.concatenate([block, (block * block).sum(axis=1, keepdims=True)], axis=1)
            mean = h.mean(axis=0)
            h -= mean
            part = cls(len(h), mean, h.T @ h)
            total = part if total is None else total + part
        return total

    def __add__(self, other):
        """The moments of both galleries together."""
        count = self.count + other.count
        step = other.mean - self.mean
        between = np.outer(step, step) * (self.count * other.count / count)
        mean = self.mean + step * (other.count / count)
        return GalleryMoments(count, mean, self.scatter + other.scatter + between)

    @property
    def dim(self):
        """Dimension of the search space."""
        return len(self.mean) - 1

    def squared_distance_scores(self, queries):
        """`(mean, variance)`, `(queries,)` each, of −‖q − g‖² of queries `(queries, dim)`."""
        centre, spread, cross, norm, total = self._about_mean
        q = np.asarray(queries, np.float64) - centre
        mean = -(q * q).sum(axis=1) - total
        variance = 4 * (products(q, spread) * q).sum(axis=1) - 4 * q @ cross + norm
        return mean, np.maximum(variance, 0.0)

    def inner_product_scores(self, queries):
        """`(mean, variance)` of q·g, as above."""
        q = np.asarray(queries, np.float64)
        centre, spread, *_ = self._about_mean
        return q @ centre, np.maximum((products(q, spread) * q).sum(axis=1), 0.0)

    @functools.cached_property
    def _about_mean(self):
        """E g, Cov g, Cov(‖g − E g‖², g), Var ‖g − E g‖² and tr Cov g: no digits cancel."""
        last, spread = self.dim, self.scatter / self.count
        c, vectors, cross = self.mean[:last], spread[:last, :last], spread[:last, last]
        norm = spread[last, last] - 4 * c @ cross + 4 * c @ vectors @ c
        return c, np.ascontiguousarray(vectors), cross - 2 * vectors @ c, norm, np.trace(vectors)

    def summary(self):
        """A few numbers of the gallery, for a calibration to carry: a dict of JSON values."""
        spread, last = self.scatter / self.count, self.dim
        return {
            "dim": last,
            "norm_of_mean": float(np.linalg.norm(self.mean[:last])),
            "total_variance": float(np.trace(spread[:last, :last])),
            "mean_squared_norm": float(self.mean[last]),
            "deviation_of_squared_norm": float(np.sqrt(max(spread[last, last], 0.0))),
        }

    def arrays(self):
        """What `numpy.savez` takes; `GalleryMoments(**arrays)` is the inverse."""
        return {"count": self.count, "mean": self.mean, "scatter": self.scatter}


@dataclasses.dataclass(frozen=True)
class GalleryIdentity:
    """A gallery by its size and a few of its moments, whatever the order of its items."""

    size: int  # number of items
    summary: dict  # of `GalleryMoments.summary`; empty where items have no vectors

    @classmethod
    def of_index(cls, index):
        """The identity of the gallery of an index."""
        moments = index.vector_moments
        return cls(len(index), {} if moments is None else moments.summary())

    def is_same(self, other):
        """Whether it is the other gallery, up to the rounding of sums."""
        if self.size != other.size or self.summary.keys() != other.summary.keys():
            return False
        scale = abs(self.summary.get("mean_squared_norm", 0.0))
        for name, value in self.summary.items():
            # Squared lengths compare with squared lengths; all are of the same data.
            least = scale if "squared" in name or "variance" in name else scale**0.5
            if abs(other.summary[name] - value) > _SAME * max(abs(value), least):
                return False
        return True
