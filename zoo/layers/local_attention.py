"""Local attention of PIE-Net: several weighted means of the local features of an item."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.layers.masking import masked_softmax


@keras.saving.register_keras_serializable(package="halo")
class LocalAttention(keras.layers.Layer):
    """Attends `num_embeddings` times over positions: softmax of W₂·tanh(W₁·x), without biases.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    zoo.layers.LocalAttention(num_embeddings=2)(features)  # (2, 2, 8)
    ```

    Args:
        num_embeddings: how many weighted means to make (K).
        hidden_dim: width of the hidden layer; None for half the channels.

    Call arguments:
        features: `(batch, positions, channels)`.
        mask: bool `(batch, positions)`, True where a position counts; padding has no weight.
        return_attention: whether to return the weights too.

    Output: `(batch, num_embeddings, channels)`; with `return_attention`, a pair of it and the
        weights, float32 `(batch, num_embeddings, positions)`, rows of which sum to one.

    Raises:
        ValueError: if a size is not a positive integer.

    Reference: PVSE (Song and Soleymani, CVPR 2019), section 3.2.
    """

    def __init__(self, num_embeddings: int = 1, hidden_dim: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        for name, size in (("num_embeddings", num_embeddings), ("hidden_dim", hidden_dim)):
            if size is not None and size < 1:
                raise ValueError(f"`{name}` must be a positive integer; received {size}")
        self.num_embeddings = num_embeddings
        self.hidden_dim = hidden_dim

    def build(self, features_shape):
        channels = features_shape[-1]
        hidden_dim = self.hidden_dim or max(channels // 2, 1)
        self.hidden = keras.layers.Dense(
            hidden_dim, activation="tanh", use_bias=False, dtype=self.dtype_policy, name="hidden"
        )
        self.score = keras.layers.Dense(
            self.num_embeddings, use_bias=False, dtype=self.dtype_policy, name="score"
        )
        self.hidden.build(features_shape)
        self.score.build((*features_shape[:-1], hidden_dim))

    def call(
        self, features: Tensor, mask: Tensor | None = None, return_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        scores = ops.swapaxes(self.score(self.hidden(features)), 1, 2)
        attention = masked_softmax(scores, None if mask is None else ops.expand_dims(mask, 1))
        pooled = ops.matmul(ops.cast(attention, features.dtype), features)
        return (pooled, attention) if return_attention else pooled

    def compute_mask(self, features, previous_mask):
        return None  # the positions are gone

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_embeddings": self.num_embeddings,
            "hidden_dim": self.hidden_dim,
        }
