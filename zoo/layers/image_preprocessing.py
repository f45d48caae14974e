"""How pixels are scaled, as layers, so that it is saved and exported."""

from typing import Any

import keras
from keras import ops
from keras.applications import imagenet_utils

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer

MODES = ("tf", "caffe", "torch")


@keras.saving.register_keras_serializable(package="halo")
class ImagePreprocessing(Layer):
    """Scales RGB pixels 0…255 as a pretrained network expects them: float32 of the same shape.

    ```python
    zoo.layers.ImagePreprocessing("tf")(np.full((1, 32, 32, 3), 255.0, "float32"))  # in [-1, 1]
    ```

    Args:
        mode: `"tf"`: to [−1, 1] (MobileNet, ViT). `"caffe"`: BGR less the ImageNet mean (ResNet
            of Keras). `"torch"`: to [0, 1], less mean, over standard deviation of ImageNet. Raises
            ValueError on another.
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


@keras.saving.register_keras_serializable(package="halo")
class PictureScaling(Layer):
    """scale · pixel + offset, a channel at a time: float32 of pixels `(batch, height, width, 3)`.

    ```python
    zoo.layers.PictureScaling(1 / 127.5, -1.0)(np.full((1, 32, 32, 3), 255.0, "float32"))  # ones
    ```

    Args:
        scale, offset: a number, or three.
        resize: how a picture is made the square that comes in, `"crop"` or `"stretch"`, see
            `zoo.data.images.prepare`. The layer does not do it; whatever shows pictures to the
            model reads it here.
        crop_fraction: with `"crop"`, the side of that square relative to the shorter side.
    """

    def __init__(
        self,
        scale: Any = 1.0,
        offset: Any = 0.0,
        resize: str = "crop",
        crop_fraction: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**{**kwargs, "dtype": "float32"})
        self.scale, self.offset, self.resize = _plain(scale), _plain(offset), resize
        self.crop_fraction = crop_fraction
        self.built = True

    def call(self, images: Tensor) -> Tensor:
        scale, offset = (ops.convert_to_tensor(v, "float32") for v in (self.scale, self.offset))
        return ops.cast(images, "float32") * scale + offset

    def compute_output_spec(self, images):
        return keras.KerasTensor(images.shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "scale": self.scale,
            "offset": self.offset,
            "resize": self.resize,
            "crop_fraction": self.crop_fraction,
        }


def _plain(value):
    return [float(v) for v in value] if hasattr(value, "__len__") else float(value)
