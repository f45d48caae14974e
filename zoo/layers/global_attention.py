"""One vector of a sequence of tokens, attended to by their own mean."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.layers.masking import masked_softmax
from zoo.layers.mean_pooling import MeanPooling
from zoo.layers.unit_length import unit_length


@keras.saving.register_keras_serializable(package="halo")
class GlobalAttention(keras.layers.Layer):
    """Σ_i a_i x_i of unit length, a = softmax of w·(tanh(W x_i) ∘ tanh(W′ mean(x))).

    ```python
    tokens = np.ones((2, 5, 8), "float32")
    zoo.layers.GlobalAttention()(tokens)  # (2, 8)
    ```

    Args:
        normalize: whether both linear maps are followed by BatchNorm, that of the tokens with one
            scale and statistic for each position. Their number must then be known.
        dropout: share of both hidden vectors that a training step zeroes.
        seed: of that.

    Call arguments:
        tokens: `(batch, positions, dim)`.
        mask: bool `(batch, positions)`, True where a position counts. Padding changes nothing.

    Output: float32 `(batch, dim)`, whatever the precision.

    Raises:
        ValueError: if the number of positions is not known and `normalize` needs it.

    Reference: SGRAF (Diao et al., AAAI 2021), section 3.1: of regions with BatchNorm, of words
        without.
    """

    def __init__(
        self, normalize: bool = False, dropout: float = 0.0, seed: int | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.normalize = normalize
        self.dropout = dropout
        self.seed = seed
        policy = self.dtype_policy
        self.mean = MeanPooling(dtype=policy, name="mean")
        self.drop = keras.layers.Dropout(dropout, seed=seed, dtype=policy, name="drop")

    def build(self, tokens_shape):
        batch, positions, dim = tokens_shape
        if self.normalize and positions is None:
            raise ValueError("`tokens` must have a known number of positions to be normalised")
        shapes = {"local": tokens_shape, "pooled": (batch, dim)}
        for name, shape in shapes.items():
            layer = keras.layers.Dense(dim, dtype=self.dtype_policy, name=name)
            layer.build(shape)
            setattr(self, name, layer)
        if self.normalize:
            for name, shape in shapes.items():
                layer = keras.layers.BatchNormalization(
                    axis=1,
                    momentum=0.9,
                    epsilon=1e-5,
                    dtype=self.dtype_policy,
                    name=f"{name}_normalize",
                )
                layer.build(shape)
                setattr(self, f"{name}_normalize", layer)
        self.score = keras.layers.Dense(1, dtype=self.dtype_policy, name="score")
        self.score.build(tokens_shape)

    def call(
        self, tokens: Tensor, mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        local, pooled = self.local(tokens), self.pooled(self.mean(tokens, mask=mask))
        if self.normalize:
            # Keras' masked statistics lose the axis of a single position; there is nothing to mask.
            counted = mask if tokens.shape[1] != 1 else None
            local = self.local_normalize(local, training=training, mask=counted)
            pooled = self.pooled_normalize(pooled, training=training)
        local = self.drop(ops.tanh(local), training=training)
        pooled = self.drop(ops.tanh(pooled), training=training)
        scores = ops.squeeze(self.score(local * ops.expand_dims(pooled, 1)), -1)
        weights = ops.cast(masked_softmax(scores, mask), tokens.dtype)
        return unit_length(ops.sum(ops.expand_dims(weights, -1) * tokens, axis=1))

    def compute_mask(self, tokens, previous_mask):
        return None  # the positions are gone

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "normalize": self.normalize,
            "dropout": self.dropout,
            "seed": self.seed,
        }
