"""Uncertainty for embeddings that were trained without any, and without training: BayesVLM."""

import keras
import numpy as np

from zoo import similarities
from zoo.embeddings.arrays import unit
from zoo.encoders.stored_features import vectors
from zoo.layers.covariance import LaplaceProjection
from zoo.models.dual_encoder import DualEncoder
from zoo.models.kronecker import factors, posterior, softmax_scale

_MOST = 50_000  # pairs that the posterior is of; more of them change little and take long


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
