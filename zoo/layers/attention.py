"""Attention that pools local features: PIE-Net's, PVSE's, and SGRAF's about their mean."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.masking import masked_softmax, unit_length
from zoo.layers.pooling import MeanPooling


@keras.saving.register_keras_serializable(package="halo")
class LocalAttention(Layer):
    """Attends `num_embeddings` times over positions: softmax of W₂·tanh(W₁·x), without biases.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    zoo.layers.LocalAttention(num_embeddings=2)(features)  # (2, 2, 8)
    ```

    Args:
        num_embeddings: how many weighted means to make (K).
        hidden_dim: width of the hidden layer; None for half the channels.
    Call arguments: features `(batch, positions, channels)`; mask, bool `(batch, positions)`, True
        where a position counts; return_attention, whether to return the weights too.
    Output: `(batch, num_embeddings, channels)`; with `return_attention`, a pair of it and the
        weights, float32 `(batch, num_embeddings, positions)`, rows of which sum to one.
        Raises ValueError if a size is not a positive integer.
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


@keras.saving.register_keras_serializable(package="halo")
class PolysemousEmbedding(Layer):
    """LayerNorm(global + sigmoid(Linear(LocalAttention(local)))): K embeddings of an item.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    head = zoo.layers.PolysemousEmbedding(8, num_embeddings=2)
    head(features, features.mean(axis=1))  # (2, 2, 8)
    ```

    Args:
        dim: dimension of the embeddings; that of `pooled`.
        num_embeddings, hidden_dim: of `LocalAttention`.
    Call arguments: features, a map `(batch, height, width, channels)` or a sequence `(batch,
        positions, channels)`; pooled, the global feature `(batch, dim)`; mask, of sequences, and
        return_attention as of `LocalAttention`.
    Output: `(batch, num_embeddings, dim)` float32, not yet L2-normalised. With `return_attention` a
        dict: these as `"elements"`, their local part sigmoid(Linear(…)) as `"slots"`, of the same
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
        self.branch = keras.layers.Dense(dim, dtype=policy, name="branch")
        # In float32 under every policy: sigmoid(branch) is 0.5 and a little, of which half
        # precision would keep nothing, and the norm magnifies just that.
        self.normalize = keras.layers.LayerNormalization(
            epsilon=1e-5, dtype="float32", name="normalize"
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
        slots = ops.sigmoid(ops.cast(self.branch(attended), "float32"))
        elements = self.normalize(ops.cast(ops.expand_dims(pooled, 1), "float32") + slots)
        if return_attention:
            return {"elements": elements, "slots": slots, "attention": attention}
        return elements


@keras.saving.register_keras_serializable(package="halo")
class GlobalAttention(Layer):
    """Σ_i a_i x_i of unit length, a = softmax of w·(tanh(W x_i) ∘ tanh(W′ mean(x))).

    ```python
    zoo.layers.GlobalAttention()(np.ones((2, 5, 8), "float32"))  # (2, 8)
    ```

    Args:
        normalize: whether both linear maps are followed by BatchNorm, that of the tokens with one
            scale and statistic for each position. Their number must then be known.
        dropout, seed: share of both hidden vectors that a training step zeroes.
    Call arguments: tokens `(batch, positions, dim)`; mask, bool `(batch, positions)`, True where a
        position counts.
    Output: float32 `(batch, dim)`. Raises ValueError if `normalize` needs the number of positions.
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
