"""The similarities once more, in float64 and pair by pair: slow, obvious, independent."""

import numpy as np


def random_gaussians(rng, count, dim, spread=1.0):
    return {
        "mean": rng.normal(size=(count, dim)).astype("float32"),
        "log_variance": (spread * rng.normal(size=(count, dim))).astype("float32"),
    }


def random_sets(rng, count, num_elements, dim, masked=False):
    """Sets whose masks, if any, leave between one and all elements of each."""
    sets = {"elements": rng.normal(size=(count, num_elements, dim)).astype("float32")}
    if masked:
        valid = rng.integers(1, num_elements + 1, size=(count, 1))
        sets["mask"] = np.arange(num_elements)[None] < valid
        sets["mask"] = rng.permuted(sets["mask"], axis=1)
    return sets


def pairs(function, images, captions):
    """`function(image, caption)` of dicts of float64 rows, for every pair."""
    images, captions = _rows(images), _rows(captions)
    return np.array([[function(image, caption) for caption in captions] for image in images])


def csd(p, q):
    return ((p["mean"] - q["mean"]) ** 2 + _variance(p) + _variance(q)).sum()


def w2(p, q):
    deviations = np.sqrt(_variance(p)) - np.sqrt(_variance(q))
    return np.sqrt(((p["mean"] - q["mean"]) ** 2 + deviations**2).sum())


def log_product_integral(p, q, power):
    """log ∫ p^power q^power dz by quadrature, dimension by dimension (both are diagonal)."""
    from scipy.integrate import quad

    total = 0.0
    for mean_p, log_p, mean_q, log_q in zip(
        p["mean"], p["log_variance"], q["mean"], q["log_variance"], strict=True
    ):

        def log_integrand(z, a=mean_p, s=log_p, b=mean_q, t=log_q):
            first = (z - a) ** 2 / np.exp(s) + s + np.log(2 * np.pi)
            second = (z - b) ** 2 / np.exp(t) + t + np.log(2 * np.pi)
            return -0.5 * power * (first + second)

        weight = 1 / (1 + np.exp(log_p - log_q))  # of the mean of p at the peak of the product
        peak = weight * mean_p + (1 - weight) * mean_q
        top = log_integrand(peak)
        width = 12 * np.sqrt(2 / power) * np.exp(0.5 * min(log_p, log_q))
        value, _ = quad(
            lambda z, top=top, f=log_integrand: np.exp(f(z) - top),
            peak - width,
            peak + width,
            epsabs=1e-12,
            epsrel=1e-10,
        )
        total += top + np.log(value)
    return total


def match_probability(p, q, scale, shift):
    distances = np.linalg.norm(p["elements"][:, None] - q["elements"][None], axis=-1)
    return (1 / (1 + np.exp(scale * distances - shift))).mean()


def average_l2(p, q):
    return np.linalg.norm(p["elements"][:, None] - q["elements"][None], axis=-1).mean()


def maximum_pair(p, q):
    return _set_cosines(p, q).max()


def chamfer(p, q):
    cosines = _set_cosines(p, q)
    return 0.5 * (cosines.max(1).mean() + cosines.max(0).mean())


def smooth_chamfer(p, q, alpha):
    powers = np.exp(alpha * _set_cosines(p, q))
    return (np.log(powers.sum(1)).mean() + np.log(powers.sum(0)).mean()) / (2 * alpha)


def set_match_probability(p, q, scale, shift):
    return np.mean(1 / (1 + np.exp(-scale * _set_cosines(p, q) - shift)))


def _set_cosines(p, q):
    def valid(s):
        elements = s["elements"][s["mask"].astype(bool)] if "mask" in s else s["elements"]
        return elements / np.linalg.norm(elements, axis=-1, keepdims=True)

    return valid(p) @ valid(q).T


def _variance(gaussian):
    return np.exp(gaussian["log_variance"])


def _rows(embedding):
    count = len(next(iter(embedding.values())))
    return [{k: np.asarray(v[i], "float64") for k, v in embedding.items()} for i in range(count)]
