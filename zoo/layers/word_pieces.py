"""What BERT adds up for each token: its vector, its place's and the sentence's."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer


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
