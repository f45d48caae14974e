"""Tokens that a transformer learns, beside those of its input, and positions for all of them."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor


@keras.saving.register_keras_serializable(package="halo")
class LearnedTokens(keras.layers.Layer):
    """Adds learned tokens to a sequence, such as [CLS] and ProLIP's [UNC], and positions to all.

    ```python
    zoo.layers.LearnedTokens(2)(np.ones((1, 5, 8), "float32"))  # (1, 7, 8)
    ```

    Args:
        count: how many tokens to add, 0 for positions alone.
        at_end: whether they come after the sequence, not before it.

    Call arguments:
        tokens: `(batch, length, width)`, of a known length.

    Output: `(batch, length + count, width)`.

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
            own = ops.broadcast_to(ops.cast(self.tokens, tokens.dtype), shape)
            tokens = ops.concatenate([tokens, own] if self.at_end else [own, tokens], axis=1)
        return tokens + ops.cast(self.positions, tokens.dtype)

    def compute_output_shape(self, tokens_shape):
        batch, length, width = tokens_shape
        return batch, length + self.count, width

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "count": self.count, "at_end": self.at_end}
