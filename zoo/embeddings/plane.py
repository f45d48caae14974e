"""Gaussian embeddings in the plane of their two main directions, and their ellipses there."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Plane:
    """A plane in the space of embeddings and the projection onto it."""

    origin: np.ndarray
    axes: np.ndarray
    explained: np.ndarray | None

    def project(self, mean, log_variance):
        """Means `(n, 2)` and full covariances `(n, 2, 2)` of diagonal Gaussians in the plane."""
        mean = (np.asarray(mean, float) - self.origin) @ self.axes
        variance = np.exp(np.asarray(log_variance, float))
        return mean, np.einsum("nd,dk,dl->nkl", variance, self.axes, self.axes)


def principal_plane(mean: np.ndarray) -> "Plane":
    """The plane of the two main directions of the means; the space itself if it has two. Raises
    ValueError if there are fewer than two dimensions or items."""
    mean = np.asarray(mean, float)
    if mean.ndim != 2 or min(mean.shape) < 2:
        raise ValueError(f"`mean` must be (n, dim), both at least 2; received shape {mean.shape}")
    if mean.shape[1] == 2:
        return Plane(np.zeros(2), np.eye(2), None)
    origin = mean.mean(axis=0)
    # Eigenvectors of the covariance: a singular value decomposition of all means takes far longer.
    size, directions = np.linalg.eigh((mean - origin).T @ (mean - origin))
    share = np.maximum(size[::-1], 0.0) / max(size.sum(), np.finfo(float).tiny)
    return Plane(origin, directions[:, :-3:-1], share[:2])


def ellipse_axes(covariance, confidence=0.95):
    """Full widths, heights and angles of the ellipses that hold a share of each Gaussian."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"`confidence` must be in (0, 1); received {confidence}")
    # The squared Mahalanobis radius of two dimensions is exponential with mean 2.
    radius = np.sqrt(-2.0 * np.log1p(-confidence))
    values, vectors = np.linalg.eigh(covariance)
    lengths = 2.0 * radius * np.sqrt(np.maximum(values, 0.0))
    angle = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    return lengths[:, 1], lengths[:, 0], angle
