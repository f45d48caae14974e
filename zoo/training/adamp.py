"""AdamP: Adam without the part of a step that only grows the norm of scale-invariant weights."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor

# The axes of the output channels, for weights that do not have them last. Biases have none, even
# where Keras stacks two of them (GRU) or splits one (attention heads).
_CHANNEL_AXES = {"embeddings": (0,), "slots": (0,), "depthwise_kernel": (2,), "bias": ()}
# Keras' attention splits the output channels of these by head: (dim, heads, head_dim).
_SPLIT_BY_HEAD = ("query", "key", "value")


@keras.saving.register_keras_serializable(package="halo")
class AdamP(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay and a projection of the steps of scale-invariant weights.

    ```python
    zoo.training.AdamP(1e-3, weight_decay=1e-4)
    ```

    A weight of two or more dimensions counts as scale-invariant while the largest
    |cos(weight, gradient)| over its output channels, or of the layer as a whole, is under
    `delta / √size`. Its step then loses its radial part, and `wd_ratio` scales its weight decay.

    Args:
        learning_rate, beta_1, beta_2, epsilon, weight_decay, **kwargs: as of
            `keras.optimizers.AdamW`; the decay is decoupled.
        delta: the bound on the cosine, before the division by √size; 0 is AdamW.
        wd_ratio: factor on the weight decay of weights that were projected.
        nesterov: whether the step looks ahead as Nesterov's does.

    Reference: Heo et al., "AdamP", ICLR 2021; official code, version 0.3.0.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-08,
        delta: float = 0.1,
        wd_ratio: float = 0.1,
        nesterov: bool = False,
        weight_decay: float | None = None,
        name: str = "adamp",
        **kwargs: Any,
    ):
        super().__init__(
            learning_rate=learning_rate, weight_decay=weight_decay, name=name, **kwargs
        )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.delta = delta
        self.wd_ratio = wd_ratio
        self.nesterov = nesterov

    def build(self, variables: list) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Updates one variable by Adam's step without the part that `_radial_part` takes out."""
        dtype, index = variable.dtype, self._get_variable_index(variable)
        learning_rate = ops.cast(learning_rate, dtype)
        gradient = ops.cast(gradient, dtype)
        if hasattr(gradient, "indices"):  # of an Embedding; the cosine needs all rows
            gradient = ops.add(ops.zeros_like(variable), gradient)
        number = ops.cast(self.iterations + 1, dtype)
        correction_1 = 1 - ops.power(ops.cast(self.beta_1, dtype), number)
        correction_2 = 1 - ops.power(ops.cast(self.beta_2, dtype), number)

        momentum, velocity = self._momentums[index], self._velocities[index]
        self.assign(momentum, self.beta_1 * momentum + (1 - self.beta_1) * gradient)
        self.assign(velocity, self.beta_2 * velocity + (1 - self.beta_2) * ops.square(gradient))
        ahead = momentum
        if self.nesterov:
            ahead = self.beta_1 * momentum + (1 - self.beta_1) * gradient
        step = ahead / (ops.sqrt(velocity / correction_2) + self.epsilon)

        radial, decay_ratio = self._radial_part(gradient, variable, step, index)
        updated = variable - learning_rate / correction_1 * (step - radial * variable)
        if self.weight_decay and self._use_weight_decay(variable):
            updated = updated - learning_rate * self.weight_decay * decay_ratio * variable
        self.assign(variable, updated)

    def _radial_part(self, gradient, variable, step, index):
        """How much of the weight itself is in its step, and the factor on its weight decay."""
        channel_axes = _channel_axes(self._trainable_variables[index])
        if not channel_axes:
            return 0.0, 1.0
        axes = [axis for axis in range(len(variable.shape)) if axis not in channel_axes]

        def channel_sum(values):
            return ops.sum(values, axis=axes, keepdims=True)

        sums = (
            channel_sum(gradient * variable),
            channel_sum(ops.square(gradient)),
            channel_sum(ops.square(variable)),
            channel_sum(variable * step),
        )
        channels = math.prod(variable.shape[axis] for axis in channel_axes)
        size = math.prod(variable.shape) // channels
        by_channel, in_channel = self._judge(*sums, size)
        by_layer, in_layer = self._judge(*(ops.sum(s) for s in sums), size * channels)
        radial = ops.where(in_channel, by_channel, ops.where(in_layer, by_layer, 0.0))
        projected = ops.cast(ops.logical_or(in_channel, in_layer), variable.dtype)
        return radial, 1 + projected * (self.wd_ratio - 1)

    def _judge(self, gradient_dot, gradient_square, square, step_dot, size):
        """The radial part of the step, and whether the weight counts as scale-invariant."""
        norm = ops.sqrt(square)
        product = ops.maximum(norm, self.epsilon) * ops.maximum(
            ops.sqrt(gradient_square), self.epsilon
        )
        cosine = ops.max(ops.abs(gradient_dot) / product)
        return step_dot / ops.square(norm + self.epsilon), cosine < self.delta / math.sqrt(size)

    def _apply_weight_decay(self, variables):
        """Does nothing: the decay depends on the projection, so `update_step` applies it."""

    def get_config(self) -> dict[str, Any]:
        names = ("beta_1", "beta_2", "epsilon", "delta", "wd_ratio", "nesterov")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def _channel_axes(variable):
    """The axes of a variable's output channels; none for what is never projected."""
    rank = len(variable.shape)
    if rank < 2:
        return ()
    owner = variable.path.rpartition("/")[0].rpartition("/")[2]
    if rank == 3 and variable.name == "kernel" and owner in _SPLIT_BY_HEAD:
        return (1, 2)
    return _CHANNEL_AXES.get(variable.name, (rank - 1,))
