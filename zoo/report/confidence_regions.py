"""Confidence regions of diagonal Gaussians: shares of mass and area inside, in any dimension."""

import numpy as np
from scipy.stats import chi2


def inside(points, mean, variance, confidence=0.95):
    """Whether points lie in the ellipsoid that holds a share of a Gaussian.

    ```python
    inside(np.array([[0.0, 0.0], [9.0, 0.0]]), 0.0, 1.0)  # [True, False]
    ```

    Args:
        points: `(…, dim)`.
        mean, variance: of the Gaussian, broadcast against the points.
        confidence: the share, in (0, 1).

    Returns:
        Booleans `(…,)`.
    """
    squared = ((points - mean) ** 2 / variance).sum(axis=-1)
    return squared <= chi2.ppf(confidence, np.shape(points)[-1])


def mass_inside(mean, variance, others, noise, confidence=0.95):
    """The share of a Gaussian that lies in the regions of all the others.

    Args:
        mean, variance: `(dim,)`.
        others: pairs of a mean and a variance.
        noise: `(num_samples, dim)` standard normal.
        confidence: of the regions.
    """
    points = mean + np.sqrt(variance) * noise
    return float(np.mean(_in_all(points, others, confidence)))


def area_inside(mean, covariance, others, disc, confidence=0.95):
    """The share of a Gaussian's ellipse in the plane that lies in the ellipses of all the others.

    Args:
        mean, covariance: `(2,)` and `(2, 2)`.
        others: pairs of a mean and a covariance.
        disc: `(num_samples, 2)` points of the unit disc.
        confidence: of the ellipses.
    """
    points = ellipse_points(mean, covariance, disc, confidence)
    return float(np.mean(in_ellipses(points, others, confidence)))


def shared_area_inside(first, second, third, disc, confidence=0.95):
    """The share of the intersection of two ellipses that a third covers; NaN where there is none.

    Args:
        first, second, third: pairs of a mean and a covariance.
        disc: `(num_samples, 2)` points of the unit disc.
        confidence: of the ellipses.
    """
    points = ellipse_points(*first, disc, confidence)
    points = points[in_ellipses(points, [second], confidence)]
    return float(np.mean(in_ellipses(points, [third], confidence))) if len(points) else np.nan


def ellipse_points(mean, covariance, disc, confidence=0.95):
    """The image of points of the unit disc in an ellipse, `(num_samples, 2)`."""
    radius = np.sqrt(chi2.ppf(confidence, 2))
    return mean + radius * disc @ np.linalg.cholesky(covariance).T


def in_ellipses(points, ellipses, confidence=0.95):
    """Whether points of the plane lie in all of some ellipses, booleans `(points,)`."""
    result = np.ones(len(points), bool)
    for mean, covariance in ellipses:
        turned = np.linalg.solve(np.linalg.cholesky(covariance), (points - mean).T).T
        result &= inside(turned, 0.0, 1.0, confidence)
    return result


def unit_disc(generator, num_samples):
    """Points drawn uniformly from the unit disc, `(num_samples, 2)`."""
    radius = np.sqrt(generator.random(num_samples))
    angle = 2 * np.pi * generator.random(num_samples)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _in_all(points, others, confidence):
    result = np.ones(len(points), bool)
    for mean, variance in others:
        result &= inside(points, mean, variance, confidence)
    return result
