"""ImageNet's three ways of scaling pixels, as a layer, so that they are saved and exported."""

from typing import Any

import keras
from keras import ops
from keras.applications import imagenet_utils

from zoo.embeddings import Tensor

MODES = ("tf", "caffe", "torch")


@keras.saving.register_keras_serializable(package="halo")
class ImagePreprocessing(keras.layers.Layer):
    """Scales RGB pixels 0…255 as a pretrained network expects them.

    ```python
    pixels = np.full((1, 32, 32, 3), 255.0, "float32")
    zoo.layers.ImagePreprocessing("tf")(pixels)  # in [-1, 1]
    ```

    Args:
        mode: `"tf"`: to [−1, 1] (MobileNet, ViT). `"caffe"`: BGR less the ImageNet mean (ResNet
            of Keras). `"torch"`: to [0, 1], less mean, over standard deviation of ImageNet.

    Call arguments:
        images: `(batch, height, width, 3)`, RGB, 0…255, integers or floats.

    Output: float32 of the same shape, whatever the precision: the network casts it.

    Raises:
        ValueError: on an unknown mode.
    """

    def __init__(self, mode: str, **kwargs: Any):
        super().__init__(**{**kwargs, "dtype": "float32"})
        if mode not in MODES:
            raise ValueError(f"`mode` must be one of {MODES}; received {mode!r}")
        self.mode = mode
        self.built = True

    def call(self, images: Tensor) -> Tensor:
        images = ops.cast(images, "float32")
        return imagenet_utils.preprocess_input(images, data_format="channels_last", mode=self.mode)

    def compute_output_spec(self, images):
        return keras.KerasTensor(images.shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "mode": self.mode}
