"""Similarities with a learned scale and shift."""

import keras
from keras import ops

from zoo.similarities.base import Similarity


@keras.saving.register_keras_serializable(package="halo")
class Bounded(keras.constraints.Constraint):
    """Keeps a weight in an interval: the optimiser clips it after every step.

    The forward pass and the gradient stay those of the free weight, as in the papers.

    Args:
        minimum: lower bound, or None.
        maximum: upper bound, or None.
    """

    def __init__(self, minimum=None, maximum=None):
        self.minimum, self.maximum = minimum, maximum

    def __call__(self, w):
        w = w if self.minimum is None else ops.maximum(w, ops.cast(self.minimum, w.dtype))
        return w if self.maximum is None else ops.minimum(w, ops.cast(self.maximum, w.dtype))

    def get_config(self):
        return {"minimum": self.minimum, "maximum": self.maximum}


def add_scale_and_shift(layer, scale, shift):
    """Gives a layer the learned scalars `scale` > 0 and `shift` of a logit −scale · x + shift.

    The scale is a plain weight, so that it starts at, reads as and learns like the papers' a. A
    sign change would turn a distance into a similarity, so it is clipped from below at 1e-3.

    Raises:
        ValueError: if the initial scale is not positive.
    """
    if not scale > 0:
        raise ValueError(f"`scale` must be positive; received {scale}")
    layer.initial_scale, layer.initial_shift = float(scale), float(shift)
    layer.scale = layer.add_weight(
        shape=(),
        initializer=keras.initializers.Constant(float(scale)),
        constraint=Bounded(minimum=1e-3),
        name="scale",
    )
    layer.shift = layer.add_weight(
        shape=(), initializer=keras.initializers.Constant(float(shift)), name="shift"
    )


class ScaledSimilarity(Similarity):
    """Base of the closed forms −scale · distance + shift with both learned.

    Args:
        scale: initial value of the learned scale, > 0.
        shift: initial value of the learned shift.
    """

    def __init__(self, scale, shift, **kwargs):
        super().__init__(**kwargs)
        add_scale_and_shift(self, scale, shift)

    def scorer(self):
        if self.from_space is None:
            return None
        scale, shift = float(self.scale), float(self.shift)
        return lambda value: shift - scale * self.from_space(value)

    def get_config(self):
        return {
            **super().get_config(),
            "scale": self.initial_scale,
            "shift": self.initial_shift,
        }
