"""A block of a transformer that normalises before it attends, as CLIP's."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor

GELU, QUICK_GELU = ACTIVATIONS = ("gelu", "quick_gelu")


@keras.saving.register_keras_serializable(package="halo")
class TransformerBlock(keras.layers.Layer):
    """x + attention(norm(x)), then x + MLP(norm(x)).

    ```python
    zoo.layers.TransformerBlock(num_heads=2, mlp_dim=32)(np.ones((1, 5, 8), "float32"))
    ```

    Args:
        num_heads: heads of the attention, which share the width.
        mlp_dim: width of the hidden layer.
        activation: of it, `"gelu"` exactly, or `"quick_gelu"`: x · sigmoid(1.702 x), OpenAI's.
        epsilon: of both LayerNorms.
        causal: whether a position attends to itself and those before it only.

    Call arguments:
        tokens: `(batch, length, width)`.

    Output: `(batch, length, width)`.

    Raises:
        ValueError: on an unknown activation, or a width that the heads do not divide.

    Relations: KerasHub's block of CLIP is it with `"quick_gelu"` and 1e-5; the parts have the same
        names.

    Reference: Radford et al., ICML 2021 (CLIP); Ilharco et al., OpenCLIP, 2021.
    """

    def __init__(
        self,
        num_heads: int,
        mlp_dim: int,
        activation: str = GELU,
        epsilon: float = 1e-5,
        causal: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {ACTIVATIONS}; received {activation!r}")
        self.num_heads, self.mlp_dim, self.epsilon = num_heads, mlp_dim, epsilon
        self.activation, self.causal = activation, causal

    def build(self, tokens_shape):
        width, policy = tokens_shape[-1], self.dtype_policy
        if width % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide the width {width}; received {self.num_heads}"
            )
        for name in ("layer_norm_1", "layer_norm_2"):
            norm = keras.layers.LayerNormalization(epsilon=self.epsilon, dtype=policy, name=name)
            norm.build(tokens_shape)
            setattr(self, name, norm)
        self.attention = keras.layers.MultiHeadAttention(
            self.num_heads, width // self.num_heads, dtype=policy, name="attention"
        )
        self.attention.build(tokens_shape, tokens_shape, tokens_shape)
        self.dense_1 = keras.layers.Dense(self.mlp_dim, dtype=policy, name="dense_1")
        self.dense_1.build(tokens_shape)
        self.dense_2 = keras.layers.Dense(width, dtype=policy, name="dense_2")
        self.dense_2.build((*tokens_shape[:-1], self.mlp_dim))

    def call(self, tokens: Tensor, training: bool | None = None) -> Tensor:
        read = self.layer_norm_1(tokens)
        tokens = tokens + self.attention(
            read, read, read, training=training, use_causal_mask=self.causal
        )
        hidden = self.dense_1(self.layer_norm_2(tokens))
        if self.activation == QUICK_GELU:
            hidden = hidden * ops.sigmoid(1.702 * hidden)
        else:
            hidden = ops.gelu(hidden, approximate=False)
        return tokens + self.dense_2(hidden)

    def compute_output_spec(self, tokens, training=None):
        return keras.KerasTensor(tokens.shape, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "mlp_dim": self.mlp_dim,
            "activation": self.activation,
            "epsilon": self.epsilon,
            "causal": self.causal,
        }
