"""Where embeddings lie: uniformity, diversity inside a set, maximum mean discrepancy."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor, as_embedding, elements, points
from zoo.embeddings.numerics import common_centre, safe_sqrt, squared_distance, unit
from zoo.losses.base import Auxiliary, positive
from zoo.similarities.sampled import sample


def uniformity(embedding: EmbeddingLike) -> Tensor:
    """log mean over the pairs i < j of exp(−2‖x_i − x_j‖²), of points `(n, dim)` or means.

    Returns:
        A float32 scalar, at most 0: 0 if all points coincide, or there is one, lower the more they
        spread, and finite however far apart they are.

    Raises:
        ValueError: if sets are given, or the rank is not two.
    Reference: Wang and Isola, ICML 2020, equation 2, with t = 2.
    Paper differs: PCME (appendix A.1) prints the plain sum of the exponentials, with each pair
        twice and every item beside itself; its code takes the logarithm of the mean, as here.
    Released code differs: PCME's is −∞ as soon as every exponential underflows and, above 128
        points, is taken on 128 of them drawn with replacement.
    """
    x = points(embedding, "embedding")
    count = ops.shape(x)[0]
    index = ops.arange(count)
    same = ops.equal(index[:, None], index[None, :])
    # Every pair stands twice in the matrix, itself left out.
    kernel = ops.where(same, -1e30, -2.0 * squared_distance(x, x))
    pairs = ops.cast(count, "float32") * (ops.cast(count, "float32") - 1.0)
    value = ops.logsumexp(kernel) - ops.log(ops.maximum(pairs, 1.0))
    return ops.where(ops.greater(pairs, 0.0), value, 0.0)


@keras.saving.register_keras_serializable(package="halo")
class Uniformity(Auxiliary):
    """`uniformity` of all images and captions of the batch together.

    ```python
    points = {"mean": np.eye(4, dtype="float32")}
    zoo.losses.Uniformity()(points, points)
    ```

    Args:
        weight, name: of `Auxiliary`; the weight is λ.
        num_samples: None for the means, or J to draw J samples of every Gaussian (PCME).
        seed: of the samples, an integer, or None for another draw each time it is built.

    Raises:
        ValueError: if sets are given, or points where samples are to be drawn.
    Reference: PCME (Chun et al., CVPR 2021) appendix A.1, on the J samples of every item.
    """

    def __init__(
        self,
        weight: float = 10.0,
        num_samples: int | None = None,
        seed: int | None = None,
        name: str = "uniformity",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"`num_samples` must be at least 1 or None; received {num_samples!r}")
        self.num_samples = num_samples
        self.seed = seed
        if num_samples is not None:
            self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        batch = [self._points(images, "images"), self._points(captions, "captions")]
        return uniformity(ops.concatenate(batch, axis=0))

    def _points(self, embedding, name):
        """Points (batch, dim), or the samples of Gaussians, (batch · samples, dim)."""
        if self.num_samples is None:
            return points(embedding, name)
        samples = sample(embedding, self.num_samples, self.seed_generator)
        return ops.reshape(samples, (-1, samples.shape[-1]))


def diversity(slots: EmbeddingLike) -> Tensor:
    """Mean over items and pairs k < l of exp(−2‖s_k − s_l‖²), slots normalised to length one.

    On unit vectors the distance is 2 − 2 cos, so a pair costs exp(−4(1 − cos)): 1 if the two
    coincide, e⁻⁴ if they are orthogonal, e⁻⁸ if they are opposite.

    Args:
        slots: sets `(batch, num_elements, dim)`, perhaps with a `"mask"`; else a ValueError.

    Returns:
        A float32 scalar in [0, 1]: the mean over the items that have a pair, 0 if none has.
    Relations: the uniformity of Wang and Isola inside each set, before its logarithm.
    Reference: DivE (Kim et al., CVPR 2023) section 3.4.
    Paper differs: it prints a sum over pairs of slots that are not normalized. Its code has this
        mean over items and pairs of unit slots, to which its weight of 0.01 belongs.
    """
    values, mask = elements(slots, "slots")
    directions = unit(values)
    cosines = ops.matmul(directions, ops.transpose(directions, (0, 2, 1)))
    present = ops.ones_like(values[:, :, 0]) if mask is None else ops.cast(mask, "float32")
    index = ops.arange(ops.shape(values)[1])
    pairs = ops.cast(ops.less(index[:, None], index[None, :]), "float32")
    pairs = pairs * present[:, :, None] * present[:, None, :]
    count = ops.sum(pairs, axis=(1, 2))
    closeness = ops.sum(pairs * ops.exp(4.0 * (cosines - 1.0)), axis=(1, 2))
    items = ops.sum(ops.cast(ops.greater(count, 0.0), "float32"))
    return ops.divide_no_nan(ops.sum(ops.divide_no_nan(closeness, count)), items)


def orthogonal_diversity(slots: EmbeddingLike) -> Tensor:
    """Mean over items of ‖G − I‖ / K², G the cosines of the K slots of an item, Frobenius norm: a
    float32 scalar in [0, 1), 0 if the slots of each item are orthogonal; otherwise as `diversity`.

    Relations: `diversity` also rewards slots that are opposite.
    Reference: PVSE (Song and Soleymani, CVPR 2019), equation 7.
    """
    values, mask = elements(slots, "slots")
    directions = unit(values)
    cosines = ops.matmul(directions, ops.transpose(directions, (0, 2, 1)))
    present = ops.ones_like(values[:, :, 0]) if mask is None else ops.cast(mask, "float32")
    others = present[:, :, None] * present[:, None, :] * (1.0 - ops.eye(values.shape[1]))
    norm = safe_sqrt(ops.sum((others * cosines) ** 2, axis=(1, 2)))
    return ops.mean(norm / ops.maximum(ops.sum(present, axis=1), 1.0) ** 2)


@keras.saving.register_keras_serializable(package="halo")
class Diversity(Auxiliary):
    """`diversity` of the images' sets plus that of the captions': of their `"slots"`, taken
    before they are normalised and joined by the global feature, else of their `"elements"`.

    ```python
    sets = {"elements": np.ones((4, 2, 8), "float32"), "slots": np.ones((4, 2, 8), "float32")}
    zoo.losses.Diversity()(sets, sets)
    ```

    Reference: DivE (Kim et al., CVPR 2023) section 3.4, with the weight 0.01.
    """

    def __init__(self, weight: float = 0.01, name: str = "diversity", **kwargs: Any):
        super().__init__(weight, name, **kwargs)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return diversity(_slots(images)) + diversity(_slots(captions))


@keras.saving.register_keras_serializable(package="halo")
class OrthogonalDiversity(Auxiliary):
    """Like `Diversity`, by `orthogonal_diversity`; slots are PIE-Net's local parts.

    ```python
    sets = {"elements": np.ones((4, 2, 8), "float32"), "slots": np.ones((4, 2, 8), "float32")}
    zoo.losses.OrthogonalDiversity()(sets, sets)
    ```

    Reference: PVSE (Song and Soleymani, CVPR 2019), equation 7.
    """

    def __init__(self, weight: float = 0.1, name: str = "diversity", **kwargs: Any):
        super().__init__(weight, name, **kwargs)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return orthogonal_diversity(_slots(images)) + orthogonal_diversity(_slots(captions))


def _slots(embedding):
    """The embedding with its slots before normalization as elements, where it has them."""
    embedding = as_embedding(embedding)
    if "slots" not in embedding:
        return embedding
    return {"elements": embedding["slots"], "mask": embedding.get("mask")}


# The name in files of version 0.1.
keras.saving.get_custom_objects()["halo>GramDiversity"] = OrthogonalDiversity


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
    ones = ops.ones_like(w)
    length = -gamma * ops.sum(z * z, axis=1, keepdims=True)
    scaled = (2.0 * gamma) ** 0.5 * z
    # The product of these is −γ‖z_i − z_j‖², without a pass over n² numbers to add the lengths.
    left = ops.concatenate([scaled, length, ones], axis=1)
    right = ops.concatenate([scaled, ones, length], axis=1)
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
    """Euclidean distances (N, M); `itself`: x is y, so that the diagonal is exactly 0."""
    distances = squared_distance(x, y)
    if itself:
        # Exactly 0, where the product leaves a rounding error and the root would magnify it.
        index = ops.arange(ops.shape(x)[0])
        distances = ops.where(ops.equal(index[:, None], index[None, :]), 0.0, distances)
    return safe_sqrt(distances)


# The name in files of version 0.1.
keras.saving.get_custom_objects()["halo>MeanDiscrepancy"] = MaximumMeanDiscrepancy
