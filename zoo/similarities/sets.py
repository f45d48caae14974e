"""Similarities of sets: MIL's best pair, Chamfer, smooth-Chamfer, DivE's match probability."""

import math

import keras
from keras import ops

from zoo.embeddings import SET
from zoo.embeddings.numerics import element_pair, elements_first, product, sizes, unit
from zoo.similarities.base import Plain, Similarity, add_scale_and_shift


def maximum_pair(images, captions):
    """The best cosine over all pairs of elements (multiple-instance learning).

    Args:
        images, captions: sets `(N, K, dim)` and `(M, L, dim)`, optionally with a mask.

    Returns:
        `(N, M)` float32 in [−1, 1]. A set without a valid element has −1 with everything.

    Raises:
        ValueError: if one side is not a set, the dimensions differ or a mask does not fit.
    Relations: with K = L = 1 it is `cosine`.
    Reference: PVSE (Song and Soleymani, CVPR 2019), equation 5.
    """
    cosines, image_mask, caption_mask = _cosines(images, captions)
    # −1 is the least a cosine can be, so a masked element never wins.
    return ops.max(_fill(cosines, image_mask, caption_mask, -1.0), axis=(0, 2))


def chamfer(images, captions):
    """Mean of every element's best cosine with the other set, both directions averaged; arguments,
    shape and errors as of `maximum_pair`.

    1/(2|S₁|) Σ_x max_y c(x, y) + 1/(2|S₂|) Σ_y max_x c(x, y)
    Relations: with K = L = 1 it is `cosine`; the limit of `smooth_chamfer` for α → ∞.
    Reference: DivE (Kim et al., CVPR 2023), table of similarities.
    """
    cosines, image_mask, caption_mask = _cosines(images, captions)
    cosines = _fill(cosines, image_mask, caption_mask, -1.0)
    return 0.5 * (
        _masked_mean(ops.max(cosines, axis=2), image_mask, axis=0)
        + _masked_mean(ops.max(cosines, axis=0), caption_mask, axis=1)
    )


def smooth_chamfer(images, captions, alpha=16.0):
    """Chamfer with a log-sum-exp for the maximum, so that every pair of elements gets a gradient;
    arguments, shape and errors as of `maximum_pair`, and α > 0, the sharpness.

    1/(2α|S₁|) Σ_x log Σ_y e^{α c(x, y)} + 1/(2α|S₂|) Σ_y log Σ_x e^{α c(x, y)}
    Relations: `chamfer` as α → ∞, above it by at most (log K + log L) / 2α.
    Reference: DivE (Kim et al., CVPR 2023), equation 6.
    """
    if not alpha > 0:
        raise ValueError(f"`alpha` must be positive; received {alpha}")
    cosines, image_mask, caption_mask = _cosines(images, captions)
    if alpha <= 40.0:
        # e^{α(c − 1)} ≥ e^{−80} is a normal float32, so one exponential serves both directions.
        powers = ops.exp(alpha * cosines - alpha)
        powers = _fill(powers, image_mask, caption_mask, 0.0)
        least = math.exp(-2.0 * alpha)  # of one valid term; binds for a set without any
        rows = ops.log(ops.maximum(ops.sum(powers, axis=2), least)) + alpha
        columns = ops.log(ops.maximum(ops.sum(powers, axis=0), least)) + alpha
    else:
        scaled = _fill(alpha * cosines, image_mask, caption_mask, -1e30)
        rows = ops.maximum(ops.logsumexp(scaled, axis=2), -alpha)
        columns = ops.maximum(ops.logsumexp(scaled, axis=0), -alpha)
    rows, columns = _masked_mean(rows, image_mask, 0), _masked_mean(columns, caption_mask, 1)
    return (0.5 / alpha) * (rows + columns)


@keras.saving.register_keras_serializable(package="halo")
class MaximumPair(Plain):
    """The best cosine over all pairs of elements of two sets; see `maximum_pair` (PVSE).

    ```python
    images = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one set of two
    captions = np.array([[[0.6, 0.8]]])  # one set of one
    zoo.similarities.MaximumPair()(images, captions)  # (1, 1)
    ```
    """

    identifier = "maximum_pair"
    embeddings = (SET,)
    space = "elements"
    function = staticmethod(maximum_pair)


@keras.saving.register_keras_serializable(package="halo")
class Chamfer(Plain):
    """Chamfer similarity of two sets; see `chamfer` (DivE's ablation).

    ```python
    images = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one set of two
    captions = np.array([[[0.6, 0.8]]])  # one set of one
    zoo.similarities.Chamfer()(images, captions)  # (1, 1)
    ```
    """

    identifier = "chamfer"
    embeddings = (SET,)
    space = "elements"
    function = staticmethod(chamfer)


@keras.saving.register_keras_serializable(package="halo")
class SmoothChamfer(Similarity):
    """Smooth-Chamfer similarity of two sets, of sharpness α > 0; see `smooth_chamfer` (DivE).

    ```python
    images = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one set of two
    captions = np.array([[[0.6, 0.8]]])  # one set of one
    zoo.similarities.SmoothChamfer(alpha=16.0)(images, captions)  # (1, 1)
    ```
    """

    identifier = "smooth_chamfer"
    embeddings = (SET,)
    space = "elements"
    function = staticmethod(smooth_chamfer)

    def __init__(self, alpha=16.0, **kwargs):
        super().__init__(**kwargs)
        if not alpha > 0:
            raise ValueError(f"`alpha` must be positive; received {alpha}")
        self.alpha = float(alpha)

    def call(self, images, captions):
        return smooth_chamfer(images, captions, self.alpha)


@keras.saving.register_keras_serializable(package="halo")
class SetMatchProbability(Similarity):
    """Mean over all pairs of elements of sigmoid(scale · cos(x, y) + shift); DivE's row "MP".

    A probability, for losses with a margin, and not a logit.

    ```python
    images = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one set of two
    captions = np.array([[[0.6, 0.8]]])  # one set of one
    zoo.similarities.SetMatchProbability()(images, captions)  # (1, 1)
    ```

    Args:
        scale, shift: initial values of the learned α > 0 (else a ValueError) and β.
    Output: `(N, M)` float32 in [0, 1]; 0 for a set without a valid element.
    Relations: `MatchProbability` is PCME's, of the distances between samples; on unit vectors the
        squared distance is 2 − 2 cos.
    Reference: DivE (Kim et al., CVPR 2023), section 3.3 and table 3. It prints the sum over pairs,
        and speaks of their average, which this is.
    Released code differs: its α = 1 and β = 0 are no parameters of the model and stay.
    """

    identifier = "set_match_probability"
    embeddings = (SET,)
    space = "elements"

    def __init__(self, scale=1.0, shift=0.0, **kwargs):
        super().__init__(**kwargs)
        add_scale_and_shift(self, scale, shift)

    def call(self, images, captions):
        (images, image_mask), (captions, caption_mask) = element_pair(images, captions)
        (n, k, _), (m, length, _) = sizes(images), sizes(captions)
        cosines = product(elements_first(unit(images)), elements_first(unit(captions)))
        pairs = ops.sigmoid(self.scale * ops.reshape(cosines, (k, n, length, m)) + self.shift)
        rows = ops.sum(pairs * _shares(image_mask, (k, n, 1, 1)), axis=0)
        return ops.sum(rows * _shares(caption_mask, (1, length, m)), axis=1)


def _cosines(images, captions):
    """Cosines `(K, N, L, M)` from one product, masks `(K, N, 1, 1)` and `(1, 1, L, M)` or None."""
    (images, image_mask), (captions, caption_mask) = element_pair(images, captions)
    n, k, _ = sizes(images)
    m, l, _ = sizes(captions)  # noqa: E741
    flat = product(elements_first(unit(images)), elements_first(unit(captions)))
    if image_mask is not None:
        image_mask = ops.reshape(ops.transpose(ops.cast(image_mask, "bool")), (k, n, 1, 1))
    if caption_mask is not None:
        caption_mask = ops.reshape(ops.transpose(ops.cast(caption_mask, "bool")), (1, 1, l, m))
    return ops.reshape(flat, (k, n, l, m)), image_mask, caption_mask


def _fill(values, image_mask, caption_mask, filling):
    """Values of pairs with `filling` where either element is masked; masks broadcast to the
    values."""
    for mask in (image_mask, caption_mask):
        if mask is not None:
            values = ops.where(mask, values, filling)
    return values


def _masked_mean(values, mask, axis):
    """Mean of `(K, N, M)` over axis 0 or of `(N, L, M)` over axis 1, of the valid elements."""
    if mask is None:
        return ops.mean(values, axis=axis)
    mask = ops.cast(ops.squeeze(mask, axis=3 if axis == 0 else 0), "float32")
    count = ops.maximum(ops.sum(mask, axis=axis), 1.0)
    return ops.sum(values * mask, axis=axis) / count


def _shares(mask, shape):
    """What each element counts in the mean of its set, elements before items."""
    if mask is None:
        count = shape[0] if len(shape) == 4 else shape[1]
        return ops.cast(1.0 / count, "float32")
    mask = ops.cast(mask, "float32")
    shares = mask / ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1.0)
    return ops.reshape(ops.transpose(shares), shape)
