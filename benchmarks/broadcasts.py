"""The formulas as one writes them down: broadcasts to `(N, M, dim)`, for comparison only."""

import numpy as np
from keras import ops


def spread(images, captions):
    """(μ, σ²) of both sides, ready to broadcast to `(N, M, dim)`."""
    p, q = ops.exp(images["log_variance"])[:, None], ops.exp(captions["log_variance"])[None]
    return images["mean"][:, None] - captions["mean"][None], p, q


def csd(images, captions):
    difference, p, q = spread(images, captions)
    return ops.sum(difference**2 + p + q, axis=-1)


def wasserstein_2(images, captions):
    difference, p, q = spread(images, captions)
    return ops.sqrt(ops.sum(difference**2 + (ops.sqrt(p) - ops.sqrt(q)) ** 2, axis=-1))


def kl(images, captions):
    difference, p, q = spread(images, captions)
    return 0.5 * ops.sum(ops.log(q) - ops.log(p) + (p + difference**2) / q - 1.0, axis=-1)


def min_kl(images, captions):
    reverse = kl(captions, images)
    return ops.minimum(kl(images, captions), ops.transpose(reverse))


def jeffreys(images, captions):
    reverse = kl(captions, images)
    return 0.5 * (kl(images, captions) + ops.transpose(reverse))


def log_expected_likelihood(images, captions):
    difference, p, q = spread(images, captions)
    return -0.5 * ops.sum(difference**2 / (p + q) + ops.log(2 * np.pi * (p + q)), axis=-1)


def bhattacharyya(images, captions):
    difference, p, q = spread(images, captions)
    logs = ops.log((p + q) / (2 * ops.sqrt(p * q)))
    return ops.sum(0.25 * difference**2 / (p + q) + 0.5 * logs, axis=-1)


def match_logit(images, captions, scale, shift):
    difference = images[:, None, :, None] - captions[None, :, None]
    x = shift - scale * ops.sqrt(ops.sum(difference**2, axis=-1) + 1e-12)
    match = ops.logsumexp(ops.log_sigmoid(x), axis=(2, 3))
    return match - ops.logsumexp(ops.log_sigmoid(-x), axis=(2, 3))
