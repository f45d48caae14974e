"""Softmax, mean and maximum over positions of which some are padding, and unit length."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.numerics import unit


def unit_length(features: Tensor) -> Tensor:
    """`features / ‖features‖₂` over the last axis, in float32: half precision is off by 1e-3."""
    return unit(ops.cast(features, "float32"))


@keras.saving.register_keras_serializable(package="halo")
class UnitLength(keras.layers.Layer):
    """`unit_length` as a layer: float32 `(..., dim)` of norm one, whatever the precision.

    ```python
    zoo.layers.UnitLength()(np.array([[3.0, 4.0]], "float32"))  # [[0.6, 0.8]]
    ```
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.built = True

    def call(self, features: Tensor) -> Tensor:
        # The square of a small number is lost in float32.
        features = ops.cast(features, "float32")
        largest = ops.stop_gradient(ops.max(ops.abs(features), axis=-1, keepdims=True))
        return unit_length(features / ops.where(largest > 0, largest, 1.0))

    def compute_output_spec(self, features):
        return keras.KerasTensor(features.shape, dtype="float32")


def masked_softmax(scores: Tensor, mask: Tensor | None = None, axis: int = -1) -> Tensor:
    """Softmax in float32 in which masked positions weigh exactly zero, all of them where a row has
    no other. The mask is True where a position counts, and broadcastable."""
    scores = ops.cast(scores, "float32")
    if mask is None:
        return _softmax(scores, axis)
    mask = ops.cast(mask, "bool")
    weights = _softmax(ops.where(mask, scores, -1e30), axis)
    return ops.where(mask, weights, 0.0)


def _softmax(scores, axis):
    """Softmax along an axis; 1, with a gradient of 0, where it has one position."""
    if scores.shape[axis] == 1:  # a map of one cell is no mistake, which Keras would warn of
        return 1.0 + 0.0 * scores  # with a gradient, whose absence it would warn of too
    return ops.softmax(scores, axis=axis)


def masked_mean(features: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean of every channel of `(batch, positions, channels)` over the positions that count, those
    that are True in the mask `(batch, positions)`: `(batch, channels)`; zeros where none does."""
    if mask is None:
        return ops.mean(features, axis=1)
    present = ops.cast(ops.expand_dims(mask, -1), features.dtype)
    count = ops.maximum(ops.sum(present, axis=1), 1)
    return ops.sum(features * present, axis=1) / count


def masked_max(features: Tensor, mask: Tensor) -> Tensor:
    """Like `masked_mean`, but the largest value of every channel."""
    mask = ops.expand_dims(ops.cast(mask, "bool"), -1)
    # Below every feature and inside of half precision.
    largest = ops.max(ops.where(mask, features, ops.full_like(features, -6e4)), axis=1)
    return ops.where(ops.any(mask, axis=1), largest, ops.zeros_like(largest))


def drop_positions(
    shape: tuple[int, ...],
    mask: Tensor | None,
    rate: float,
    seed: keras.random.SeedGenerator,
    varied: bool = False,
) -> Tensor:
    """The mask `(batch, positions)` that is left when every position is lost with a probability,
    but never all of them."""
    present = ops.ones(shape, "bool") if mask is None else ops.cast(mask, "bool")
    draw = ops.where(present, keras.random.uniform(shape, seed=seed), -1.0)
    luckiest = ops.equal(draw, ops.max(draw, axis=1, keepdims=True))
    if varied:
        share = keras.random.uniform((shape[0], 1), seed=seed)
        rate = ops.where(share > rate, rate * share, 0.0)
    keep = ops.logical_or(ops.greater_equal(draw, rate), luckiest)
    return ops.logical_and(keep, present)
