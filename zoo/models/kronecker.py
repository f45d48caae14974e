"""The Kronecker-factored Laplace posterior of a projection that was trained by a softmax.

For W of q × p the precision of vec(W) is A ⊗ B, A of p × p out of the features, B of q × q out of
the curvature of the loss. Then log|A ⊗ B| = q log|A| + p log|B|: each factor's determinant has the
other factor's size as its exponent.

Released code differs: BayesVLM's has p and q of these exponents exchanged, and without the ½.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from zoo.embeddings.arrays import unit

_BLOCK = 2048  # items of a side that are contrasted with each other
_PRECISIONS = (-8.0, 12.0)  # log λ that are searched


class Posterior(NamedTuple):
    """What `zoo.layers.LaplaceProjection` needs: `root` R of Ã⁻¹ = R Rᵀ `(p, p)`, the `diagonal` of
    B̃⁻¹ `(q,)`, and the prior precision λ."""

    root: np.ndarray
    diagonal: np.ndarray
    prior_precision: float


def factors(features, projected, others, scale, block=_BLOCK):
    """The Kronecker factors of the loss' Gauss–Newton matrix.

    A = n^-½ Σ φφᵀ and B = n^-½ Σ t² J (Yᵀ diag(π) Y − Yᵀπ πᵀY) Jᵀ, where J = (I − ĝĝᵀ)/‖g‖ is the
    Jacobian of g/‖g‖ and π = softmax(t · ĝYᵀ). All are matrix products over blocks.

    Args:
        features: φ, `(n, p)`.
        projected: g = Wφ, `(n, q)`, not normalised.
        others: the other side's embeddings, `(n, q)`, each row the match of the same row here;
            they are normalised here.
        scale: t.
        block: an item is contrasted with so many of the other side, its own match among them.

    Returns:
        `(A, B)`, float64 `(p, p)` and `(q, q)`, of all n items.
    """
    count, channels = features.shape
    first = np.zeros((channels, channels))
    second = np.zeros((projected.shape[1],) * 2)
    for start in range(0, count, block):
        part = slice(start, start + block)
        own = np.asarray(features[part], np.float32)
        first += own.T @ own
        second += _curvature(
            np.asarray(projected[part], np.float32), np.asarray(others[part], np.float32), scale
        )
    return first / np.sqrt(count), second / np.sqrt(count)


def log_marginal_likelihood(eigenvalues, squared_norm, precision, pseudo_count=10.0):
    """The part of log p(data | λ) that depends on the prior precision λ.

    −½ λ ‖W‖² + ½ pq log λ − ½ (q log|Ã| + p log|B̃|), Ã = √m A + √λ I and B̃ = √m B + √λ I. The
    eigenvalues are those of A and of B, and m is how many items each item stands for.
    """
    first, second = eigenvalues
    p, q, root, more = len(first), len(second), np.sqrt(precision), np.sqrt(pseudo_count)
    determinants = q * np.log(more * first + root).sum() + p * np.log(more * second + root).sum()
    return -0.5 * precision * squared_norm + 0.5 * p * q * np.log(precision) - 0.5 * determinants


def posterior(first, second, squared_norm, pseudo_count=10.0, prior_precision=None):
    """The `Posterior` out of the factors A and B, ‖W‖² and m of `log_marginal_likelihood`; a prior
    precision of None is that of the greatest marginal likelihood."""
    values, vectors = np.linalg.eigh(first)
    other_values, other_vectors = np.linalg.eigh(second)
    eigenvalues = np.maximum(values, 0.0), np.maximum(other_values, 0.0)
    if prior_precision is None:
        found = minimize_scalar(
            lambda log: (
                -log_marginal_likelihood(eigenvalues, squared_norm, np.exp(log), pseudo_count)
            ),
            bounds=_PRECISIONS,
            method="bounded",
        )
        prior_precision = float(np.exp(found.x))
    root, more = np.sqrt(prior_precision), np.sqrt(pseudo_count)
    inverse = 1.0 / (more * eigenvalues[0] + root)
    diagonal = np.square(other_vectors) @ (1.0 / (more * eigenvalues[1] + root))
    return Posterior(vectors * np.sqrt(inverse), diagonal, prior_precision)


def softmax_scale(images, captions, block=_BLOCK):
    """The factor t of cosines, 1 to 200, by maximum likelihood of both softmaxes over blocks of
    matched rows `(n, q)`."""
    images, captions = (np.asarray(side[:block], np.float32) for side in (images, captions))
    cosines = unit(images) @ unit(captions).T

    def loss(log):
        logits = np.exp(log) * cosines
        return sum(_entropy(part) for part in (logits, logits.T))

    return float(np.exp(minimize_scalar(loss, bounds=(0.0, np.log(200.0)), method="bounded").x))


def _curvature(projected, others, scale):
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    lengths = np.maximum(lengths, 1e-12)
    own, others = projected / lengths, unit(np.asarray(others, np.float32))
    cosines = own @ others.T
    share = scale * cosines
    share = np.exp(share - share.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    weight = (scale / lengths) ** 2
    mean = share @ others
    # H_i = Yᵀ(diag π_i − π_iπ_iᵀ)Y; J H J = H − ĝ(Hĝ)ᵀ − (Hĝ)ĝᵀ + (ĝᵀHĝ) ĝĝᵀ, over ‖g‖².
    whole = (others.T * (weight * share).sum(axis=0)) @ others - (weight * mean).T @ mean
    centred = share * (cosines - (share * cosines).sum(axis=1, keepdims=True))
    along = centred @ others
    cross = (weight * own).T @ along
    twice = weight * (along * own).sum(axis=1, keepdims=True)
    return whole - cross - cross.T + (twice * own).T @ own


def _entropy(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(shifted).sum(axis=1)) - np.diagonal(shifted))
