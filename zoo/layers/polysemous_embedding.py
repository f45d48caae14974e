"""PIE-Net: a set of embeddings from the global and the attended local features."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.layers.local_attention import LocalAttention


@keras.saving.register_keras_serializable(package="halo")
class PolysemousEmbedding(keras.layers.Layer):
    """LayerNorm(global + sigmoid(Linear(LocalAttention(local)))): K embeddings of an item.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    head = zoo.layers.PolysemousEmbedding(8, num_embeddings=2)
    head(features, features.mean(axis=1))  # (2, 2, 8)
    ```

    Args:
        dim: dimension of the embeddings; that of `pooled`.
        num_embeddings: embeddings an item (K).
        hidden_dim: width of the local attention's hidden layer; None for half the channels.

    Call arguments:
        features: local features, a map `(batch, height, width, channels)` or a sequence
            `(batch, positions, channels)`.
        pooled: global feature `(batch, dim)`.
        mask: bool `(batch, positions)`, True where a position counts; for sequences only.
        return_attention: whether to return what `SetPrediction` does.

    Output: `(batch, num_embeddings, dim)`, not yet L2-normalised. With `return_attention` a dict:
        these as `"elements"`, their local part sigmoid(Linear(…)) as `"slots"`, of the same
        shape, and `"attention"`, float32 `(batch, num_embeddings, positions)`.

    Relations: with one embedding and L2 normalisation it is the mean of PCME (`GaussianHead`).

    Reference: PVSE (Song and Soleymani, CVPR 2019), equations 1 and 2.
    """

    def __init__(
        self, dim: int, num_embeddings: int = 1, hidden_dim: int | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        if dim < 1:
            raise ValueError(f"`dim` must be a positive integer; received {dim}")
        self.dim = dim
        policy = self.dtype_policy
        self.attention = LocalAttention(num_embeddings, hidden_dim, dtype=policy, name="attention")
        self.branch = keras.layers.Dense(dim, activation="sigmoid", dtype=policy, name="branch")
        self.normalize = keras.layers.LayerNormalization(
            epsilon=1e-5, dtype=policy, name="normalize"
        )

    def build(self, features_shape, pooled_shape):
        if pooled_shape[-1] != self.dim:
            raise ValueError(
                f"`pooled` must have shape (batch, {self.dim}); received {tuple(pooled_shape)}"
            )
        features_shape = (features_shape[0], None, features_shape[-1])
        self.attention.build(features_shape)
        self.branch.build((features_shape[0], self.attention.num_embeddings, features_shape[-1]))
        self.normalize.build((features_shape[0], self.attention.num_embeddings, self.dim))

    def call(
        self,
        features: Tensor,
        pooled: Tensor,
        mask: Tensor | None = None,
        return_attention: bool = False,
    ) -> Tensor | Embedding:
        if len(features.shape) == 4:
            features = ops.reshape(features, (ops.shape(features)[0], -1, features.shape[-1]))
        attended, attention = self.attention(features, mask=mask, return_attention=True)
        slots = self.branch(attended)
        elements = self.normalize(ops.expand_dims(pooled, 1) + slots)
        if return_attention:
            return {"elements": elements, "slots": slots, "attention": attention}
        return elements

    def compute_mask(self, features, previous_mask):
        return None  # the positions are gone

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "dim": self.dim,
            "num_embeddings": self.attention.num_embeddings,
            "hidden_dim": self.attention.hidden_dim,
        }
