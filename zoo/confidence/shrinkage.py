"""A Gaussian of many dimensions in few numbers: leading directions, one variance for the rest."""

import dataclasses

import numpy as np

from zoo.confidence import checks


@dataclasses.dataclass(frozen=True, eq=False)
class ShrunkGaussian:
    """Mean and shrunk covariance of points, for their Mahalanobis distance.

    The sample covariance S is drawn towards a multiple of the identity, (1 − ρ) S + ρ tr(S)/D I,
    with Ledoit and Wolf's ρ. Of the result the leading directions are kept, and the others share
    their mean variance, as in probabilistic PCA: (rank + 1)(dim + 1) numbers in place of dim².

    Attributes:
        mean: `(dim,)`.
        axes: `(rank, dim)`, orthonormal.
        variances: `(rank,)`, along the axes.
        rest: the variance in every other direction.

    Reference: Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance
        matrices", 2004; Tipping and Bishop, "Probabilistic Principal Component Analysis", 1999.
    """

    mean: np.ndarray
    axes: np.ndarray
    variances: np.ndarray
    rest: float

    @classmethod
    def fit(cls, points, rank):
        """Of points `(N, dim)`, two at least.

        Raises:
            ValueError: if the points are not finite, fewer than two, or all equal.
        """
        points = checks.matrix(points, "training_means")
        rank = checks.whole(rank, "rank")
        count, dim = points.shape
        mean = points.mean(axis=0)
        centred = points - mean
        covariance = centred.T @ centred / count
        average = np.trace(covariance) / dim
        if count < 2 or not average > 0:
            raise ValueError(
                "`training_means` must be of two different queries at least; received "
                f"{count} {'equal ones' if count > 1 else 'query'}"
            )
        shrinkage = ledoit_wolf(centred, covariance)
        values, vectors = np.linalg.eigh((1 - shrinkage) * covariance)
        values = np.maximum(values, 0.0) + shrinkage * average
        values = np.maximum(values, 1e-12 * average)
        rank = min(rank, dim - 1)
        rest = values[: dim - rank].mean()
        # In the precision of a stored calibration, so that reading it again changes nothing.
        mean, axes = (
            x.astype(np.float32).astype(float) for x in (mean, vectors[:, dim - rank :].T)
        )
        return cls(mean, axes, values[dim - rank :], float(rest))

    def distance(self, points):
        """Mahalanobis distance of points `(Q, dim)` to the mean, `(Q,)`, over √dim.

        Raises:
            ValueError: if the dimension differs or a number is not finite.
        """
        points = checks.matrix(points, "means")
        if points.shape[1] != len(self.mean):
            raise ValueError(
                f"`means` must be (queries, {len(self.mean)}); received shape {points.shape}"
            )
        centred = points - self.mean
        along = centred @ self.axes.T
        left = np.maximum((centred**2).sum(axis=1) - (along**2).sum(axis=1), 0.0)
        squared = (along**2 / self.variances).sum(axis=1) + left / self.rest
        return np.sqrt(squared / len(self.mean))


def ledoit_wolf(centred, covariance):
    """Ledoit and Wolf's ρ in [0, 1] of centred points `(N, dim)` and their covariance."""
    count, dim = centred.shape
    average = np.trace(covariance) / dim
    away = (covariance**2).sum() / dim - average**2  # squared distance of S to its target
    if away <= 0:
        return 1.0
    # Mean squared distance of x xᵀ to S over the points, by ‖x xᵀ‖² = ‖x‖⁴.
    noise = ((centred**2).sum(axis=1) ** 2).mean() - (covariance**2).sum()
    return float(np.clip(noise / (dim * count) / away, 0.0, 1.0))
