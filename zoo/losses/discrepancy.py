"""Maximum mean discrepancy: keeps images and captions in one region of the space."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor, as_embedding, elements, points
from zoo.embeddings.numerics import common_centre, safe_sqrt, squared_distance
from zoo.losses.base import Auxiliary, positive

_BLOCK = 800  # points; enough for the speed of a matrix product


def maximum_mean_discrepancy(
    images: EmbeddingLike, captions: EmbeddingLike, gamma: float = 0.5, squared: bool = True
) -> Tensor:
    """Squared MMD: mean k(x, x') + mean k(y, y') − 2 mean k(x, y), all pairs, itself included.

    Args:
        images, captions: points `(n, dim)`, `(m, dim)`, or embeddings: means, or all elements.
        gamma: γ > 0 of the kernel.
        squared: kernel exp(−γ‖x − y‖²) (Gaussian) if true, else exp(−γ‖x − y‖) (Laplacian).

    Returns:
        A float32 scalar, 0 if both are the same points, up to rounding never below.

    Raises:
        ValueError: if `gamma` is not above 0, or the dimensions differ.

    Reference: Gretton et al., JMLR 2012, equation 5 (biased estimate).

    Released code differs: PVSE and DivE call the kernel RBF but do not square the distance;
        `squared=False` is theirs.
    """
    gamma = positive("gamma", gamma)
    x, x_weights = _flat(images, "images")
    y, y_weights = _flat(captions, "captions")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"`images` and `captions` must have one dimension; received {x.shape} and {y.shape}"
        )
    if squared:
        centre = common_centre(x, y)
        both = ops.concatenate([x - centre, y - centre], axis=0)
        return _quadratic_form(both, ops.concatenate([x_weights, -y_weights]), gamma)

    def mean_kernel(a, b, weights_a, weights_b, itself=False):
        kernel = ops.exp(-gamma * _distances(a, b, itself))
        return ops.sum(ops.matmul(kernel, weights_b[:, None])[:, 0] * weights_a)

    return (
        mean_kernel(x, x, x_weights, x_weights, itself=True)
        + mean_kernel(y, y, y_weights, y_weights, itself=True)
        - 2.0 * mean_kernel(x, y, x_weights, y_weights)
    )


@keras.saving.register_keras_serializable(package="halo")
class MaximumMeanDiscrepancy(Auxiliary):
    """`maximum_mean_discrepancy` between all images and all captions of the batch.

    ```python
    points = {"mean": np.eye(4, dtype="float32")}
    zoo.losses.MaximumMeanDiscrepancy()(points, points)  # 0.0
    ```

    Args:
        weight, name: of `Auxiliary`; the weight is 0.01 in PVSE and DivE.
        gamma, squared: see `maximum_mean_discrepancy`.

    Reference: PVSE (Song and Soleymani, CVPR 2019) equation 6; DivE (Kim et al., CVPR 2023)
        section 3.4.
    """

    def __init__(
        self,
        weight: float = 0.01,
        gamma: float = 0.5,
        squared: bool = True,
        name: str = "mean_discrepancy",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        self.gamma = positive("gamma", gamma)
        self.squared = bool(squared)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return maximum_mean_discrepancy(images, captions, self.gamma, self.squared)


def _flat(embedding, name):
    """Points `(n, dim)` and the weight of each, summing to one."""
    embedding = as_embedding(embedding, name)
    if "elements" not in embedding:
        x, mask = points(embedding, name), None
    else:
        x, mask = elements(embedding, name)
        x = ops.reshape(x, (-1, x.shape[-1]))
    weights = ops.ones_like(x[:, 0])
    if mask is not None:
        weights = ops.reshape(ops.cast(mask, "float32"), (-1,))
    return x, ops.divide_no_nan(weights, ops.sum(weights))


def _quadratic_form(points, weights, gamma):
    """Σ_ij w_i w_j exp(−γ‖z_i − z_j‖²), with its gradient from one product more."""
    z, w = ops.stop_gradient(points), ops.expand_dims(ops.stop_gradient(weights), 1)
    one = ops.ones_like(w)
    length = -gamma * ops.sum(z * z, axis=1, keepdims=True)
    scaled = (2.0 * gamma) ** 0.5 * z
    # The product of these is −γ‖z_i − z_j‖², without a pass over n² numbers to add the lengths.
    left = ops.concatenate([scaled, length, one], axis=1)
    right = ops.concatenate([scaled, one, length], axis=1)
    weighted = ops.concatenate([w * z, w], axis=1)
    sums = _kernel_sums(left, right, weighted)
    value = ops.sum(w * sums[:, -1:])
    slope = -4.0 * gamma * w * (sums[:, -1:] * z - sums[:, :-1])
    return value + ops.sum(slope * (points - z))


def _kernel_sums(left, right, weighted):
    """exp(left · rightᵀ) · weighted, for a symmetric exponent, by blocks of it."""
    blocks = [slice(None)]
    if left.shape[0] is not None and left.shape[0] >= 2 * _BLOCK:
        starts = range(0, left.shape[0], _BLOCK)
        blocks = [slice(start, min(start + _BLOCK, left.shape[0])) for start in starts]
    sums = [0.0] * len(blocks)
    for i, rows in enumerate(blocks):
        for j, columns in enumerate(blocks[i:], start=i):
            exponent = ops.matmul(left[rows, :], ops.transpose(right[columns, :]))
            # −γ‖z_i − z_j‖² of long, near points is a small difference of large numbers.
            kernel = ops.exp(ops.minimum(exponent, 0.0))
            sums[i] = sums[i] + ops.matmul(kernel, weighted[columns, :])
            if i != j:
                sums[j] = sums[j] + ops.matmul(ops.transpose(kernel), weighted[rows, :])
    return ops.concatenate(sums, axis=0)


def _distances(x, y, itself):
    distances = squared_distance(x, y)
    if itself:
        # Exactly 0, where the product leaves a rounding error and the root would magnify it.
        index = ops.arange(ops.shape(x)[0])
        distances = ops.where(ops.equal(index[:, None], index[None, :]), 0.0, distances)
    return safe_sqrt(distances)


# The name in files of version 0.1.
keras.saving.get_custom_objects()["halo>MeanDiscrepancy"] = MaximumMeanDiscrepancy
