"""PCME's match probability without sampling: two moments of the distance and a quadrature."""

import math

import numpy as np
from keras import ops

from zoo.embeddings.numerics import (
    common_centre,
    gaussian_pair,
    outer_sum,
    product,
    safe_sqrt,
)
from zoo.similarities.gaussian import closed_form_sampled_distance

# Nodes and weights for the standard normal: ∫ f(x) φ(x) dx ≈ Σ w f(x).
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODES = _NODES.reshape(-1, 1, 1).astype("float32")
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum()).reshape(-1, 1, 1).astype("float32")


def moment_matched_match_probability(images, captions, scale, shift):
    """E sigmoid(−scale · ‖Z_v − Z_t‖₂ + shift) for Gaussians, without sampling.

    ‖Z_v − Z_t‖² is a weighted sum of χ² variables with

        mean      m = Σ (μ_v − μ_t)² + Σ s                 (CSD),   s = σ_v² + σ_t²
        variance  v = 2 Σ s² + 4 Σ (μ_v − μ_t)² s

    both sums of matrix products. A χ² with these two moments has a nearly normal cube root
    (Wilson and Hilferty): ‖Z_v − Z_t‖ ≈ √m · (1 − h + √h · x)^(3/2) with h = v / 9m², x ~ N(0, 1),
    over which nine Gauss–Hermite points integrate.

    Args:
        images, captions: Gaussians, N and M of one dimension dim; else a ValueError.
        scale, shift: a > 0, in 1 / units of the space, and b.

    Returns:
        `(N, M)` float32 in [0, 1].

    Relations: what `match_probability` converges to as J grows, up to an error of 1e-3 and less
        from some ten dimensions on (`python -m benchmarks moment_matching`). In two dimensions,
        where a χ² is far from normal and nine points are few for a steep sigmoid, a few 1e-2.

    Reference: the probability is PCME's (Chun et al., CVPR 2021, equation 3). Wilson and Hilferty,
        "The distribution of chi-square", PNAS 1931.
    """
    return ops.sigmoid(moment_matched_logit(images, captions, scale, shift))


def moment_matched_logit(images, captions, scale, shift):
    """log p − log(1 − p) of `moment_matched_match_probability`, in log space: `(N, M)` float32."""
    mean = closed_form_sampled_distance(images, captions)
    root = safe_sqrt(squared_distance_variance(images, captions)) / (3.0 * mean)
    # v ≤ 2m² for any such sum; rounding must not leave that range.
    root = ops.expand_dims(ops.minimum(root, math.sqrt(2.0) / 3.0), 0)
    cube_root = ops.maximum(1.0 - root * root + root * _NODES, 0.0)
    x = shift - scale * ops.expand_dims(safe_sqrt(mean), 0) * cube_root * safe_sqrt(cube_root)
    log_match = ops.log_sigmoid(x)
    log_mismatch = log_match - x
    return ops.logsumexp(log_match + _LOG_WEIGHTS, axis=0) - ops.logsumexp(
        log_mismatch + _LOG_WEIGHTS, axis=0
    )


def squared_distance_variance(images, captions):
    """Var ‖Z_v − Z_t‖² = 2 Σ (σ_v² + σ_t²)² + 4 Σ (μ_v − μ_t)² (σ_v² + σ_t²): `(N, M)` ≥ 0."""
    (image_mean, image_log), (caption_mean, caption_log) = gaussian_pair(images, captions)
    centre = common_centre(image_mean, caption_mean)
    a, b = image_mean - centre, caption_mean - centre
    p, q = ops.exp(image_log), ops.exp(caption_log)
    # Σ (p + q)² and Σ (a − b)² (p + q), multiplied out and collected by factor.
    rows = ops.sum(p * (2.0 * p + 4.0 * a * a), axis=-1)
    columns = ops.sum(q * (2.0 * q + 4.0 * b * b), axis=-1)
    products = product(p, q + b * b) + product(a * a, q) - 2.0 * product(a * p, b)
    products = products - 2.0 * product(a, b * q)
    return ops.maximum(outer_sum(rows, columns) + 4.0 * products, 0.0)
