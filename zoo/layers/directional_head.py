"""AsymVLM's head: a direction and how concentrated the embedding is about it."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor


@keras.saving.register_keras_serializable(package="halo")
class DirectionalHead(keras.layers.Layer):
    """η = κ₀ · start + MLP(features): the direction is η/‖η‖, the concentration κ = ‖η‖.

    ```python
    found = zoo.layers.DirectionalHead(3, hidden_dim=8)(np.ones((2, 5), "float32"))
    found["log_concentration"]  # (2,)
    ```

    Args:
        dim: dimension of the sphere's space (D).
        hidden_dim: width of the MLP's hidden layers.
        num_hidden: how many there are.
        concentration: κ₀, the first concentration: the last layer starts at zero, so the first
            directions are those of the features, or of a linear map where they are not `dim` wide.

    Call arguments:
        features: `(batch, channels)`.

    Output: `{"mean": (batch, dim), "log_concentration": (batch,)}` float32, the mean of length
        one, the concentration at least 1e-3.

    Raises:
        ValueError: if the concentration is not positive.

    Reference: AsymVLM (NeurIPS 2025), section 3 and its appendix for 512-1024-1024-1024-512.

    Paper differs: there η is the MLP alone, which forgets at first where CLIP's caption was.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int = 1024,
        num_hidden: int = 3,
        concentration: float = 20.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if not concentration > 0:
            raise ValueError(f"`concentration` must be positive; received {concentration}")
        self.dim, self.hidden_dim, self.num_hidden = dim, hidden_dim, num_hidden
        self.concentration = float(concentration)
        policy = self.dtype_policy
        self.start = None
        self.hidden = [
            keras.layers.Dense(hidden_dim, "relu", dtype=policy, name=f"hidden_{number}")
            for number in range(num_hidden)
        ]
        self.last = keras.layers.Dense(
            dim, kernel_initializer="zeros", dtype=policy, name="natural_parameter"
        )

    def build(self, features_shape):
        if features_shape[-1] != self.dim:
            self.start = keras.layers.Dense(self.dim, dtype=self.dtype_policy, name="start")
            self.start.build(features_shape)
        shape = tuple(features_shape)
        for layer in self.hidden:
            layer.build(shape)
            shape = (*shape[:-1], self.hidden_dim)
        self.last.build(shape)

    def call(self, features: Tensor) -> Embedding:
        start = features if self.start is None else self.start(features)
        hidden = features
        for layer in self.hidden:
            hidden = layer(hidden)
        start, change = ops.cast(start, "float32"), ops.cast(self.last(hidden), "float32")
        length = ops.sqrt(ops.maximum(ops.sum(start**2, axis=-1, keepdims=True), 1e-12))
        natural = self.concentration * start / length + change
        squared = ops.maximum(ops.sum(natural**2, axis=-1), 1e-6)
        mean = natural / ops.expand_dims(ops.sqrt(squared), -1)
        return {"mean": mean, "log_concentration": 0.5 * ops.log(squared)}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "dim": self.dim,
            "hidden_dim": self.hidden_dim,
            "num_hidden": self.num_hidden,
            "concentration": self.concentration,
        }
