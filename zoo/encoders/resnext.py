"""ResNet and ResNeXt: residual blocks of grouped convolutions, laid out as torchvision's."""

import os

import keras
from keras import layers

from zoo.encoders.weight_arrays import COUNTERS, WeightArrays
from zoo.encoders.weight_layouts import fill, torchvision
from zoo.layers.image_preprocessing import PictureScaling

# Blocks of each stage, groups and their width.
TORCHVISION = {
    "resnet50": ((3, 4, 6, 3), 1, 64),
    "resnet101": ((3, 4, 23, 3), 1, 64),
    "resnet152": ((3, 8, 36, 3), 1, 64),
    "resnext101_32x8d": ((3, 4, 23, 3), 32, 8),
}
# Of ImageNet's pixels, 0 … 1.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def resnext(
    blocks: tuple[int, ...] = (3, 4, 23, 3),
    groups: int = 32,
    width: int = 8,
    image_size: int = 224,
    name: str = "resnext101_32x8d",
) -> keras.Model:
    """A ResNeXt without pooling and classifier; the default is ResNeXt-101 32×8d.

    Args:
        blocks: residual blocks of each of the four stages.
        groups: groups of the 3 × 3 convolutions (cardinality).
        width: channels of a group in the first stage; they double from stage to stage.
        image_size: height and width of the images, or None for any.
        name: of the model.

    Returns:
        A Functional `keras.Model` from images `(batch, size, size, 3)`, scaled by ImageNet's mean
        and deviation (`ImagePreprocessing("torch")`), to features `(batch, size / 32, size / 32,
        2048)`. Layers have torchvision's names with `_` for the dots.

    Reference: Xie et al., "Aggregated Residual Transformations for Deep Neural Networks",
        CVPR 2017.
    """
    images = keras.Input((image_size, image_size, 3), name="images")
    x = _convolution(images, 64, 7, 2, "conv1")
    x = layers.ReLU(name="relu")(_normalization(x, "bn1"))
    # Padding with zeros is padding with −∞ here, after the ReLU.
    x = layers.ZeroPadding2D(1, name="maxpool_padding")(x)
    x = layers.MaxPooling2D(3, 2, name="maxpool")(x)
    for stage, count in enumerate(blocks):
        for index in range(count):
            strides = 2 if stage and not index else 1
            prefix = f"layer{stage + 1}_{index}"
            x = _block(x, 2**stage, groups, width, strides, prefix, shortcut=not index)
    return keras.Model(images, x, name=name)


def torchvision_backbone(
    name: str,
    image_size: int = 224,
    resize: str = "crop",
    crop_fraction: float = 224 / 256,
) -> keras.Model:
    """A network of torchvision without pooling and classifier, ImageNet's scaling inside.

    Its strides lie in the 3 × 3 convolutions, those of `zoo.encoders.convolutional`'s ResNets in
    the 1 × 1 ones before them.

    Args:
        name: `"resnet50"`, `"resnet101"`, `"resnet152"` or `"resnext101_32x8d"`.
        image_size: height and width of the images.
        resize, crop_fraction: how pictures become squares, see `zoo.layers.PictureScaling`; the
            default is "resize to 256, crop 224".

    Returns:
        A Functional `keras.Model` named `"backbone"` from images `(batch, size, size, 3)`, 0…255,
        to features `(batch, size / 32, size / 32, 2048)`.

    Raises:
        ValueError: on an unknown name.

    Reference: He et al., CVPR 2016; Xie et al., CVPR 2017.
    """
    if name not in TORCHVISION:
        raise ValueError(f"`name` must be one of {tuple(TORCHVISION)}; received {name!r}")
    blocks, groups, width = TORCHVISION[name]
    network = resnext(blocks, groups, width, image_size, name)
    images = keras.Input((image_size, image_size, 3), name="images")
    scaling = PictureScaling(
        [1 / (255 * one) for one in DEVIATION],
        [-mean / one for mean, one in zip(MEAN, DEVIATION, strict=True)],
        resize,
        crop_fraction,
        name="preprocessing",
    )
    return keras.Model(images, network(scaling(images)), name="backbone")


def load_torchvision_weights(network: keras.Model, path: str | os.PathLike) -> None:
    """Copies weights with torchvision's names into a `resnext`.

    Such as `resnext101_32x8d` of torchvision, or of WSL-Images, whose state dict has the same
    names. The classifier (`fc`) and the counters of batches are left out.

    Args:
        network: of `resnext`.
        path: a `.safetensors` or `.npz` file of the state dict's arrays, in PyTorch's layouts.

    Raises:
        InputError: if there is no such file, an array is missing, left over, not finite, or has
            another shape than the network's.
    """
    arrays = WeightArrays(path, f"torchvision weights of {network.name!r}")
    fill(arrays, torchvision(network), repr(network.name), (*COUNTERS, "fc."))


def _block(x, scale, groups, width, strides, prefix, shortcut):
    """1 × 1, grouped 3 × 3, 1 × 1, and the input beside them, mapped where its shape changes."""
    inner, outer = groups * width * scale, 256 * scale
    short = x
    if shortcut:
        short = _convolution(x, outer, 1, strides, f"{prefix}_downsample_0")
        short = _normalization(short, f"{prefix}_downsample_1")
    x = _normalization(_convolution(x, inner, 1, 1, f"{prefix}_conv1"), f"{prefix}_bn1")
    x = layers.ReLU(name=f"{prefix}_relu1")(x)
    x = _convolution(x, inner, 3, strides, f"{prefix}_conv2", groups)
    x = layers.ReLU(name=f"{prefix}_relu2")(_normalization(x, f"{prefix}_bn2"))
    x = _normalization(_convolution(x, outer, 1, 1, f"{prefix}_conv3"), f"{prefix}_bn3")
    return layers.ReLU(name=f"{prefix}_relu3")(layers.Add(name=f"{prefix}_add")([x, short]))


def _convolution(x, channels, size, strides, name, groups=1):
    # PyTorch pads both sides alike; "same" would pad the end only, where a stride is even.
    if size > 1:
        x = layers.ZeroPadding2D(size // 2, name=f"{name}_padding")(x)
    convolution = layers.Conv2D(channels, size, strides, groups=groups, use_bias=False, name=name)
    return convolution(x)


def _normalization(x, name):
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=name)(x)
