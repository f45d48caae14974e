"""L2 normalisation with a finite gradient everywhere."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.numerics import unit


def unit_length(features: Tensor) -> Tensor:
    """`features / ‖features‖₂` over the last axis, in float32: half precision is off by 1e-3.

    The zero vector stays zero and has a finite gradient, unlike in `ops.normalize`, where it
    gets NaN: an empty caption is one.
    """
    return unit(ops.cast(features, "float32"))


@keras.saving.register_keras_serializable(package="halo")
class UnitLength(keras.layers.Layer):
    """`unit_length` as a layer, for Functional models.

    ```python
    zoo.layers.UnitLength()(np.array([[3.0, 4.0]], "float32"))  # [[0.6, 0.8]]
    ```

    Call arguments:
        features: `(..., dim)`.

    Output: the shape of `features`, float32 whatever the precision, of norm one.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.built = True

    def call(self, features: Tensor) -> Tensor:
        return unit_length(features)

    def compute_output_spec(self, features):
        return keras.KerasTensor(features.shape, dtype="float32")
