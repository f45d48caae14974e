"""Samples of Gaussians, and what is averaged over their pairs: match probability, distance."""

import math

import keras
from keras import ops

from zoo.embeddings import gaussian
from zoo.numerics import (
    element_pair,
    elements_first,
    safe_sqrt,
    sizes,
    squared_distance,
)


def sample(embedding, num_samples, seed=None):
    """Draws z = μ + σ·ε from every Gaussian, ε ~ N(0, I): `(batch, num_samples, dim)` float32.

    Args:
        embedding: Gaussians, `(batch, dim)`.
        num_samples: draws from each.
        seed: as in Keras, an int or a `keras.random.SeedGenerator`.
    """
    mean, log_variance = gaussian(embedding)
    shape = (ops.shape(mean)[0], num_samples, mean.shape[-1])
    return reparameterize(mean, log_variance, keras.random.normal(shape, seed=seed))


def reparameterize(mean, log_variance, noise):
    """μ + σ·ε of `(batch, dim)` twice and noise `(batch or 1, J, dim)`: `(batch, J, dim)`."""
    deviation = ops.exp(0.5 * log_variance)
    return ops.expand_dims(mean, 1) + ops.expand_dims(deviation, 1) * noise


def match_probability(images, captions, scale, shift):
    """PCME's probability that an image and a caption match.

    Mean over the J × J' pairs of samples of sigmoid(−scale · ‖z_v − z_t‖₂ + shift).

    Args:
        images: samples `(N, J, dim)` (or a set with an optional mask).
        captions: samples `(M, J', dim)`.
        scale: a > 0, in 1 / units of the space.
        shift: b.

    Returns:
        `(N, M)` float32 in [0, 1].

    Raises:
        ValueError: if one side has not rank three or the dimensions differ.

    Relations: its logit is what `MatchProbability` returns. With J = 1 it is the sigmoid of a
        scaled and shifted negative distance.

    Reference: PCME (Chun et al., CVPR 2021), equation 3; HIB (Oh et al., ICLR 2019).
        Released code differs: its softmax over (x, −x) is sigmoid(2x), so its a and b are half.
    """
    return ops.sigmoid(sampled_logit(images, captions, scale, shift))


def average_l2(images, captions):
    """Mean over the J × J' pairs of samples of ‖z_v − z_t‖₂.

    Args:
        images: samples `(N, J, dim)` (or a set with an optional mask).
        captions: samples `(M, J', dim)`.

    Returns:
        `(N, M)` float32 ≥ 0, in units of the space.

    Raises:
        ValueError: if one side has not rank three or the dimensions differ.

    Reference: PCME (Chun et al., CVPR 2021), table E.1.
    """
    distance, log_weight = _sample_distances(images, captions)
    if log_weight is None:
        return ops.mean(distance, axis=(0, 2))
    return ops.sum(distance * ops.exp(log_weight), axis=(0, 2))


def sampled_logit(images, captions, scale, shift):
    """log p − log(1 − p) of `match_probability`, without ever forming p: `(N, M)` float32."""
    distance, log_weight = _sample_distances(images, captions)
    x = shift - scale * distance
    log_match = ops.log_sigmoid(x)
    log_mismatch = log_match - x
    if log_weight is not None:
        log_match, log_mismatch = log_match + log_weight, log_mismatch + log_weight
    return ops.logsumexp(log_match, axis=(0, 2)) - ops.logsumexp(log_mismatch, axis=(0, 2))


def _sample_distances(images, captions):
    """Distances `(J, N, J', M)` from one product, and the log weight of each or None."""
    (images, image_mask), (captions, caption_mask) = element_pair(images, captions)
    n, j, _ = sizes(images)
    m, k, _ = sizes(captions)
    squared = squared_distance(elements_first(images), elements_first(captions))
    distance = safe_sqrt(ops.reshape(squared, (j, n, k, m)))
    if image_mask is None and caption_mask is None:
        return distance, None
    return distance, _log_weights(image_mask, j, n, 0) + _log_weights(caption_mask, k, m, 2)


def _log_weights(mask, count, batch, axis):
    """log of one over the number of valid samples, −1e30 at masked ones, `(J, N)` in 4-D."""
    shape = (count, batch, 1, 1) if axis == 0 else (1, 1, count, batch)
    if mask is None:
        return ops.full((1, 1, 1, 1), -math.log(count))
    mask = ops.cast(mask, "bool")
    valid = ops.maximum(ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True), 1.0)
    return ops.reshape(ops.transpose(ops.where(mask, -ops.log(valid), -1e30)), shape)
