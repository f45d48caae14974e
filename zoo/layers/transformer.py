"""A transformer's block, the tokens beside its input, BERT's pieces, encodings of places."""

import math
from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer

GELU, QUICK_GELU, TANH_GELU = ACTIVATIONS = ("gelu", "quick_gelu", "gelu_tanh")


@keras.saving.register_keras_serializable(package="halo")
class TransformerBlock(Layer):
    """x + attention(norm(x)), then x + MLP(norm(x)); or norm(x + attention(x)), as BERT has it.

    ```python
    zoo.layers.TransformerBlock(num_heads=2, mlp_dim=32)(np.ones((1, 5, 8), "float32"))
    ```

    Args:
        num_heads: heads of the attention, which share the width.
        mlp_dim: width of the hidden layer.
        activation: of it, `"gelu"` exactly; `"quick_gelu"`: x · sigmoid(1.702 x), OpenAI's; or
            `"gelu_tanh"`, GELU's approximation by tanh.
        epsilon: of both LayerNorms.
        causal: whether a position attends to itself and those before it only.
        post_norm: whether the norms come after the sums.
        dropout: of the attention's weights and of both branches' outputs.
    Output: `(batch, length, width)`, of tokens of the same shape and padding_mask, bool `(batch,
        length)`, True where there is a token. Raises ValueError on an unknown activation, or a
        width that the heads do not divide.
    Relations: KerasHub's block of CLIP is it with `"quick_gelu"` and 1e-5; the parts have the same
        names. KerasHub's `TransformerEncoder`, of BERT, is it with `post_norm`.
    Reference: Radford et al., ICML 2021 (CLIP); Ilharco et al., OpenCLIP, 2021; Devlin et al.,
        NAACL 2019 (BERT).
    """

    def __init__(
        self,
        num_heads: int,
        mlp_dim: int,
        activation: str = GELU,
        epsilon: float = 1e-5,
        causal: bool = False,
        post_norm: bool = False,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {ACTIVATIONS}; received {activation!r}")
        self.num_heads, self.mlp_dim, self.epsilon = num_heads, mlp_dim, epsilon
        self.activation, self.causal = activation, causal
        self.post_norm, self.dropout = post_norm, dropout

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
            self.num_heads,
            width // self.num_heads,
            dropout=self.dropout,
            dtype=policy,
            name="attention",
        )
        self.attention.build(tokens_shape, tokens_shape, tokens_shape)
        self.dense_1 = keras.layers.Dense(self.mlp_dim, dtype=policy, name="dense_1")
        self.dense_1.build(tokens_shape)
        self.dense_2 = keras.layers.Dense(width, dtype=policy, name="dense_2")
        self.dense_2.build((*tokens_shape[:-1], self.mlp_dim))
        self.dropout_1 = keras.layers.Dropout(self.dropout, dtype=policy, name="dropout_1")
        self.dropout_2 = keras.layers.Dropout(self.dropout, dtype=policy, name="dropout_2")

    def call(
        self, tokens: Tensor, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        if self.post_norm:
            tokens = self.layer_norm_1(tokens + self._attended(tokens, padding_mask, training))
            return self.layer_norm_2(tokens + self._mlp(tokens, training))
        tokens = tokens + self._attended(self.layer_norm_1(tokens), padding_mask, training)
        return tokens + self._mlp(self.layer_norm_2(tokens), training)

    def _attended(self, tokens, mask, training):
        """Self-attention of tokens (batch, length, dim); padding is not attended to."""
        attended = self.attention(
            tokens,
            tokens,
            tokens,
            attention_mask=None if mask is None else ops.expand_dims(mask, 1),
            training=training,
            use_causal_mask=self.causal,
        )
        return self.dropout_1(attended, training=training)

    def _mlp(self, tokens, training):
        """The two dense layers of the block, over each token."""
        hidden = self.dense_1(tokens)
        if self.activation == QUICK_GELU:
            hidden = hidden * ops.sigmoid(1.702 * hidden)
        else:
            hidden = ops.gelu(hidden, approximate=self.activation == TANH_GELU)
        return self.dropout_2(self.dense_2(hidden), training=training)

    def compute_output_spec(self, tokens, padding_mask=None, training=None):
        return keras.KerasTensor(tokens.shape, self.compute_dtype)


@keras.saving.register_keras_serializable(package="halo")
class LearnedTokens(Layer):
    """Adds learned tokens to a sequence, such as [CLS] and ProLIP's [UNC], and positions to all.

    ```python
    zoo.layers.LearnedTokens(2)(np.ones((1, 5, 8), "float32"))  # (1, 7, 8)
    ```

    Args:
        count: how many tokens to add, 0 for positions alone.
        at_end: whether they come after the sequence, not before it.
    Output: `(batch, length + count, width)` of `(batch, length, width)`, of a known length.
    Reference: Dosovitskiy et al., ICLR 2021 (the class token); ProLIP (Chun et al., ICLR 2025).
    """

    def __init__(self, count: int = 1, at_end: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.count, self.at_end = count, at_end

    def build(self, tokens_shape):
        length, width = tokens_shape[1:]
        small = keras.initializers.RandomNormal(stddev=width**-0.5)
        if self.count:
            self.tokens = self.add_weight((self.count, width), initializer=small, name="tokens")
        self.positions = self.add_weight(
            (length + self.count, width), initializer=small, name="positions"
        )

    def call(self, tokens: Tensor) -> Tensor:
        if self.count:
            shape = (ops.shape(tokens)[0], self.count, tokens.shape[-1])
            learned = ops.broadcast_to(ops.cast(self.tokens, tokens.dtype), shape)
            tokens = ops.concatenate(
                [tokens, learned] if self.at_end else [learned, tokens], axis=1
            )
        return tokens + ops.cast(self.positions, tokens.dtype)

    def compute_output_shape(self, tokens_shape):
        batch, length, width = tokens_shape
        return batch, length + self.count, width


def sinusoidal_encoding(positions: Tensor, dim: int) -> Tensor:
    """Sine and cosine in turn, of `positions / 10000^(2i / dim)`: float32, the shape of `positions`
    (radians at the highest frequency) and `dim`. Raises ValueError if `dim` is odd."""
    if dim % 2:
        raise ValueError(f"`dim` must be even, a sine and a cosine each; received {dim}")
    frequencies = ops.exp(ops.arange(0, dim, 2, dtype="float32") * (-math.log(10000.0) / dim))
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * frequencies
    waves = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
    return ops.reshape(waves, (*ops.shape(positions), dim))


def sequence_encoding(length: int, dim: int, mask: Tensor | None = None) -> Tensor:
    """Encodings of the relative place in a sequence, `(batch, length, dim)`, 2π at its last
    position. Places are relative to the number of words, so more padding changes nothing."""
    places = ops.expand_dims(ops.arange(1, length + 1, dtype="float32"), 0)
    count = length
    if mask is not None:
        count = ops.maximum(ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True), 1.0)
    return sinusoidal_encoding(places * (2 * math.pi) / count, dim)


def map_encoding(height: int, width: int, dim: int) -> Tensor:
    """Encodings of the cells of a feature map, `(1, height · width, dim)` row by row: half the
    channels for the row, half the column; `dim` is a multiple of four."""
    if dim % 4:
        raise ValueError(f"`dim` must be a multiple of 4 to encode a map; received {dim}")
    rows = ops.expand_dims(sequence_encoding(height, dim // 2), 2)
    columns = ops.expand_dims(sequence_encoding(width, dim // 2), 1)
    shape = (1, height, width, dim // 2)
    both = [ops.broadcast_to(rows, shape), ops.broadcast_to(columns, shape)]
    return ops.reshape(ops.concatenate(both, axis=-1), (1, height * width, dim))


@keras.saving.register_keras_serializable(package="halo")
class WordPieces(Layer):
    """BERT's embedding of token ids: of the piece, its place and the first sentence, normalised.

    ```python
    zoo.layers.WordPieces(30522, dim=8)(np.ones((1, 5), "int32"))  # (1, 5, 8)
    ```

    Args:
        vocabulary_size, dim, max_length: number of token ids, width, number of places.
        epsilon: of the LayerNorm.
        dropout: share of the numbers that a training step zeroes.
    Output: `(batch, length, dim)` of int ids `(batch, length)`.
    Reference: Devlin et al., NAACL 2019, section 3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        dim: int,
        max_length: int = 512,
        epsilon: float = 1e-12,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size, self.dim, self.max_length = vocabulary_size, dim, max_length
        self.epsilon, self.dropout = epsilon, dropout

    def build(self, ids_shape):
        small = keras.initializers.TruncatedNormal(stddev=0.02)
        self.pieces = self.add_weight(
            (self.vocabulary_size, self.dim), initializer=small, name="pieces"
        )
        self.places = self.add_weight((self.max_length, self.dim), initializer=small, name="places")
        self.sentence = self.add_weight((self.dim,), initializer=small, name="sentence")
        policy = self.dtype_policy
        self.norm = keras.layers.LayerNormalization(epsilon=self.epsilon, dtype=policy, name="norm")
        self.norm.build((*ids_shape, self.dim))
        self.drop = keras.layers.Dropout(self.dropout, dtype=policy, name="drop")

    def call(self, ids: Tensor, training: bool | None = None) -> Tensor:
        pieces = ops.take(ops.convert_to_tensor(self.pieces), ids, axis=0)
        places = ops.convert_to_tensor(self.places)[: ops.shape(ids)[1]]
        total = pieces + ops.expand_dims(places, 0) + ops.convert_to_tensor(self.sentence)
        return self.drop(self.norm(ops.cast(total, self.compute_dtype)), training=training)

    def compute_output_spec(self, ids, training=None):
        return keras.KerasTensor((*ids.shape, self.dim), self.compute_dtype)
