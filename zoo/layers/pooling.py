"""Local features pooled: their mean, and a learned generalisation of it."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.masking import masked_mean, masked_softmax
from zoo.layers.sentence_gru import SentenceGRU
from zoo.layers.transformer import sinusoidal_encoding


@keras.saving.register_keras_serializable(package="halo")
class MeanPooling(Layer):
    """Mean over the positions of `(batch, positions, channels)`: `(batch, channels)`.

    ```python
    zoo.layers.MeanPooling()(np.ones((2, 5, 8), "float32"))  # (2, 8)
    ```

    A mask, bool `(batch, positions)`, is True where a position counts; none gives zeros.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.built = True

    def call(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        return masked_mean(features, mask)


@keras.saving.register_keras_serializable(package="halo")
class GeneralizedPooling(Layer):
    """Sorts the features of each channel and takes their weighted sum by rank.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    zoo.layers.GeneralizedPooling()(features)  # (2, 8)
    ```

    The weights are made by a bidirectional GRU from encodings of the ranks, so they depend on the
    number of features alone, not on the features.

    Args:
        position_dim: dimension of the encodings of the ranks, even.
        hidden_dim: dimension of the GRU's states.
        temperature: divides the scores before their softmax.
    Call arguments: features `(batch, positions, channels)`; mask, bool `(batch, positions)`, True
        where a position counts.
    Output: `(batch, channels)`; no features give zeros. Raises ValueError if the temperature is
        not positive.
    Relations: max pooling, mean pooling and their mixtures are weights that it can learn.
    Reference: VSE∞ (Chen et al., CVPR 2021), section 3.2; used by PCME++ (Chun, ICLR 2024).
    """

    def __init__(
        self, position_dim: int = 32, hidden_dim: int = 32, temperature: float = 0.1, **kwargs: Any
    ):
        super().__init__(**kwargs)
        if temperature <= 0:
            raise ValueError(f"`temperature` must be positive; received {temperature}")
        self.position_dim = position_dim
        self.hidden_dim = hidden_dim
        self.temperature = temperature
        policy = self.dtype_policy
        self.reader = SentenceGRU(hidden_dim, merge="ave", dtype=policy, name="reader")
        self.score = keras.layers.Dense(1, use_bias=False, dtype=policy, name="score")

    def build(self, features_shape):
        self.reader.build((None, features_shape[1], self.position_dim))
        self.score.build((None, features_shape[1], self.hidden_dim))

    def call(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        length = ops.shape(features)[1]
        ranks = ops.expand_dims(ops.arange(length), 0)
        counts = None
        if mask is not None:
            mask = ops.cast(mask, "bool")
            features = ops.where(ops.expand_dims(mask, -1), features, _lowest(features))
            # the ranks that are taken, wherever the padding was
            counts = ranks < ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
        weights = self._weights(ranks, counts)
        ordered = -ops.sort(-features, axis=1)
        if mask is not None:
            ordered = ops.where(ops.expand_dims(counts, -1), ordered, ops.zeros_like(ordered))
        return ops.sum(ordered * ops.cast(ops.expand_dims(weights, -1), ordered.dtype), axis=1)

    def _weights(self, ranks, counts):
        """One row for all items without mask: the GRU then reads one sequence only."""
        encoding = sinusoidal_encoding(ranks, self.position_dim)
        if counts is not None:
            encoding = ops.where(ops.expand_dims(counts, -1), encoding, 0.0)
        states, _ = self.reader(encoding, mask=counts)
        scores = ops.cast(ops.squeeze(self.score(states), -1), "float32")
        return masked_softmax(scores / self.temperature, counts)


def _lowest(features):
    """A finite value under all features: an infinite one makes NaN of a weight of zero."""
    return -3e4 if features.dtype == "float16" else -1e30
