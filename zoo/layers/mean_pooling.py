"""The mean of local features, without the padding."""

from typing import Any

import keras

from zoo.embeddings import Tensor
from zoo.layers.masking import masked_mean


@keras.saving.register_keras_serializable(package="halo")
class MeanPooling(keras.layers.Layer):
    """Mean over positions.

    ```python
    features = np.ones((2, 5, 8), "float32")  # (batch, positions, channels)
    zoo.layers.MeanPooling()(features)  # (2, 8)
    ```

    Call arguments:
        features: `(batch, positions, channels)`.
        mask: bool `(batch, positions)`, True where a position counts.

    Output: `(batch, channels)`; zeros for an item of which no position counts.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.built = True

    def call(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        return masked_mean(features, mask)

    def compute_mask(self, features, previous_mask):
        return None  # the positions are gone
