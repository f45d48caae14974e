"""BayesVLM: vectors of a trained model as Gaussians, by a Kronecker-factored Laplace posterior."""

from typing import NamedTuple

import keras
import numpy as np
from scipy.optimize import minimize_scalar

from zoo import similarities
from zoo.embeddings.arrays import unit
from zoo.encoders.stored_features import vectors
from zoo.layers.covariance import LaplaceProjection
from zoo.models.dual_encoder import DualEncoder

_BLOCK = 2048  # items of a side that are contrasted with each other
_PRECISIONS = (-8.0, 12.0)  # log λ that are searched
_MOST = 50_000  # pairs that the posterior is of; more of them change little and take long


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


def laplace(
    images,
    captions,
    image_weight=None,
    caption_weight=None,
    scale=None,
    pseudo_count=10.0,
    prior_precision=None,
    normalize=True,
    seed=0,
):
    """A model of Gaussians out of the vectors of a model of points, by a Laplace approximation.

    The last projection of each tower gets a Kronecker-factored Gaussian posterior, whose
    predictive variance is the embedding's. Nothing is trained.

    ```python
    rng = np.random.default_rng(0)
    images, captions = rng.normal(size=(2, 64, 8))
    model = zoo.models.laplace(images, captions)
    model.encode_images(images[:2])  # a MultivariateNormalDiag
    ```

    Args:
        images, captions: pairs, `(n, p)` each, row i with row i: the features before the
            projections, or the embeddings themselves.
        image_weight, caption_weight: the projections `(p, q)`, or None where `images` and
            `captions` are embeddings already: W is then the identity.
        scale: t of the softmax that the vectors were trained with, such as 100 for CLIP; None
            takes the one under which the pairs are most likely.
        pseudo_count: m, how many items each item stands for; BayesVLM takes 10.
        prior_precision: λ of both towers; None maximises each one's marginal likelihood.
        normalize: whether the vectors are brought to unit length first.
        seed: of the sample of pairs, where there are more than 50,000.

    Returns:
        A `DualEncoder` of Gaussians with `ProbabilisticCosine(scale)`, without a loss. Its
        uncertainty is the total variance over the squared length of the mean, by `log_det` in
        order.

    Raises:
        ValueError: if the pairs do not fit each other, or one projection alone is given.

    Reference: "Post-hoc Probabilistic Vision-Language Models" (BayesVLM), ICLR 2026.
    """
    images, captions = np.asarray(images), np.asarray(captions)
    if (image_weight is None) != (caption_weight is None):
        raise ValueError("`image_weight` and `caption_weight` must both be given, or neither")
    if images.ndim != 2 or captions.ndim != 2 or len(images) != len(captions):
        raise ValueError(
            "`images` and `captions` must be as many vectors (n, channels); received shapes "
            f"{images.shape} and {captions.shape}"
        )
    order = np.random.default_rng(seed).permutation(len(images))[:_MOST]
    features = [_features(side[order], normalize) for side in (images, captions)]
    given = (image_weight, caption_weight)
    weights = [None if weight is None else np.asarray(weight, np.float32) for weight in given]
    projected = [f if w is None else f @ w for f, w in zip(features, weights, strict=True)]
    if projected[0].shape[1] != projected[1].shape[1]:
        raise ValueError(
            "both sides must have one dimension after their projections; received "
            f"{projected[0].shape[1]} and {projected[1].shape[1]}"
        )
    scale = softmax_scale(*projected) if scale is None else float(scale)
    towers = []
    for side, name in enumerate(("image_encoder", "caption_encoder")):
        weight, own = weights[side], projected[side]
        squared_norm = own.shape[1] if weight is None else float(np.square(weight).sum())
        found = posterior(
            *factors(features[side], own, projected[1 - side], scale),
            squared_norm,
            pseudo_count,
            prior_precision,
        )
        towers.append(_tower(name, features[side].shape[1], own.shape[1], weight, found, normalize))
    return DualEncoder(
        *towers,
        similarity=similarities.ProbabilisticCosine(scale),
        uncertainty_measure="log_det",
        name="laplace",
    )


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


def _features(values, normalize):
    values = np.asarray(values, np.float32)
    return unit(values) if normalize else values


def _tower(name, channels, dim, weight, found, normalize):
    inputs = keras.Input((channels,), name=name.partition("_")[0] + "s")
    layer = LaplaceProjection(dim, identity=weight is None, name="head")
    outputs = layer(vectors(channels, normalize)(inputs)["pooled"])
    if weight is not None:
        layer.kernel.assign(weight)
    layer.root.assign(found.root)
    layer.log_diagonal.assign(np.log(found.diagonal))
    return keras.Model(inputs, outputs, name=name)
