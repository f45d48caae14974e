"""The mean of local features, without the padding."""

import keras

from zoo.layers.masking import masked_mean


@keras.saving.register_keras_serializable(package="halo")
class MeanPooling(keras.layers.Layer):
    """Mean over positions.

    Call arguments:
        features: `(batch, positions, channels)`.
        mask: bool `(batch, positions)`, True where a position counts.

    Output: `(batch, channels)`; zeros for an item of which no position counts.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built = True

    def call(self, features, mask=None):
        return masked_mean(features, mask)

    def compute_mask(self, features, previous_mask):
        return None  # the positions are gone
