"""Convolutional image encoders: images to a map of local features."""

import os
import pathlib

import keras
from keras import layers

from halo_search.errors import InputError
from zoo.encoders.efficientnet_lite import (
    IMAGE_SIZE,
    efficientnet_lite2,
    load_efficientnet_lite_weights,
)
from zoo.encoders.weight_arrays import COUNTERS, NPZ, SAFETENSORS, WeightArrays, load_weights
from zoo.encoders.weight_layouts import fill, torchvision
from zoo.layers.image_preprocessing import ImagePreprocessing, PictureScaling

# Blocks of each stage, groups and their width.
TORCHVISION = {
    "resnet50": ((3, 4, 6, 3), 1, 64),
    "resnet101": ((3, 4, 23, 3), 1, 64),
    "resnet152": ((3, 8, 36, 3), 1, 64),
    "resnext101_32x8d": ((3, 4, 23, 3), 32, 8),
}
# Of ImageNet's pixels, 0 … 1.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# name: (constructor, mode of preprocessing)
_APPLICATIONS = {
    "resnet50": (keras.applications.ResNet50, "caffe"),
    "resnet101": (keras.applications.ResNet101, "caffe"),
    "resnet152": (keras.applications.ResNet152, "caffe"),
    "mobilenet_v2": (keras.applications.MobileNetV2, "tf"),
}
_RESNEXT, _LITE = "resnext101_32x8d", "efficientnet_lite2"
FROM_SCRATCH = ("tiny", "tiny_layout")  # there are no weights of these
CONVOLUTIONAL = (*_APPLICATIONS, _RESNEXT, _LITE, *FROM_SCRATCH)


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
    name: str, image_size: int = 224, resize: str = "crop", crop_fraction: float = 224 / 256
) -> keras.Model:
    """A network of torchvision, with strides in its 3 × 3 convolutions, to `(batch, size / 32, size
    / 32, 2048)`, ImageNet's scaling inside. Raises ValueError on an unknown name."""
    if name not in TORCHVISION:
        raise ValueError(f"`name` must be one of {tuple(TORCHVISION)}; received {name!r}")
    blocks, groups, width = TORCHVISION[name]
    network = resnext(blocks, groups, width, image_size, name)
    images = keras.Input((image_size, image_size, 3), name="images")
    scaling = PictureScaling(
        [1 / (255 * deviation) for deviation in DEVIATION],
        [-mean / deviation for mean, deviation in zip(MEAN, DEVIATION, strict=True)],
        resize,
        crop_fraction,
        name="preprocessing",
    )
    return keras.Model(images, network(scaling(images)), name="backbone")


def load_torchvision_weights(network: keras.Model, path: str | os.PathLike) -> None:
    """Copies an array file with torchvision's names into a `resnext`; `fc` and counters are left
    out. Raises InputError if an array is missing, left over, not finite or of another shape."""
    arrays = WeightArrays(path, f"torchvision weights of {network.name!r}")
    fill(arrays, torchvision(network), repr(network.name), (*COUNTERS, "fc."))


# Networks whose weights are also read by PyTorch's names.
_FROM_ARRAYS = {_RESNEXT: load_torchvision_weights, _LITE: load_efficientnet_lite_weights}


def convolutional(
    name: str,
    image_size: int | None = None,
    weights: str | os.PathLike | None = None,
    trainable: bool = True,
) -> keras.Model:
    """A convolutional network without its pooling and classifier.

    | name | parameters | default image | feature map |
    |---|---|---|---|
    | `"resnet50"` | 23.6 M | 224 | 7 × 7 × 2048 |
    | `"resnet101"` | 42.7 M | 224 | 7 × 7 × 2048 |
    | `"resnet152"` | 58.4 M | 224 | 7 × 7 × 2048 |
    | `"resnext101_32x8d"` | 86.7 M | 224 | 7 × 7 × 2048 |
    | `"mobilenet_v2"` | 2.3 M | 224 | 7 × 7 × 1280 |
    | `"efficientnet_lite2"` | 4.9 M | 260 | 9 × 9 × 1280 |
    | `"tiny"` | 0.19 M | 64 | 8 × 8 × 128 |
    | `"tiny_layout"` | 0.75 M | 64 | 1 × 1 × 256 |

    `"tiny"` and `"tiny_layout"` are for Toy Birds, from scratch. They have BatchNorm as the others:
    with GroupNorm, images start out nearly alike, and a contrastive loss stays at chance for
    hundreds of steps. A cell of `"tiny"` does not know where it is, so its pooled map cannot tell a
    red crown from a red tail; the one feature of `"tiny_layout"` has weights for every place.

    Args:
        name: one of the above.
        image_size: height and width of the images, or None for the default.
        weights: `"imagenet"` (fetched once by Keras, which has none of ResNeXt and
            EfficientNet-Lite2), the path of a `.weights.h5` or `.h5` file of the network without
            classifier, or None for random ones. For ResNeXt and EfficientNet-Lite2 also a
            `.safetensors` or `.npz` file with the names of torchvision, of EfficientNet-PyTorch.
        trainable: False freezes the network: its weights stay and its BatchNorms use their
            stored statistics, also in training. `model.trainable = True` thaws it.

    Returns:
        A Functional `keras.Model` named `"backbone"` from RGB images
        `(batch, image_size, image_size, 3)`, 0…255, integers or floats, to features
        `(batch, height, width, channels)`. Preprocessing is inside.

    Raises:
        ValueError: on an unknown name.
        InputError: if the weights are not there or not of this network.
    Reference: He et al., CVPR 2016 (ResNet); Xie et al., CVPR 2017 (ResNeXt); Sandler et al.,
        CVPR 2018 (MobileNetV2); Tan and Le, ICML 2019 (EfficientNet).
    """
    if name not in CONVOLUTIONAL:
        raise ValueError(f"`name` must be one of {CONVOLUTIONAL}; received {name!r}")
    network, preprocessing = _network(name, image_size, imagenet=weights == "imagenet")
    if weights not in (None, "imagenet"):
        is_arrays = pathlib.PurePath(weights).suffix in (SAFETENSORS, NPZ)
        load = _FROM_ARRAYS.get(name, load_weights) if is_arrays else load_weights
        load(network, weights)
    images = keras.Input(network.input_shape[1:], name="images")
    features = network(preprocessing(images))
    backbone = keras.Model(images, features, name="backbone")
    backbone.trainable = trainable
    return backbone


def backbone_of_file(path: str | os.PathLike | None) -> str | None:
    """The name of the network that a weights file is named after, or None:
    `mobilenetv2_imagenet_notop.weights.h5` and `resnet50_weights_tf.h5` say what they are."""
    stem = pathlib.PurePath(str(path)).name.lower().replace("_", "")
    names = (*_APPLICATIONS, _RESNEXT, _LITE)
    return next((name for name in names if name.replace("_", "") in stem), None)


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
    """A convolution without bias, padded on both sides."""
    # PyTorch pads both sides alike; "same" would pad the end only, where a stride is even.
    if size > 1:
        x = layers.ZeroPadding2D(size // 2, name=f"{name}_padding")(x)
    convolution = layers.Conv2D(channels, size, strides, groups=groups, use_bias=False, name=name)
    return convolution(x)


def _normalization(x, name):
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=name)(x)


def _network(name, image_size, imagenet):
    """The network, and the layer that scales pixels as it expects them."""
    if name not in _APPLICATIONS:
        if imagenet:
            raise InputError(f"the network {name!r} has no ImageNet weights; give a path or none")
        if name == _RESNEXT:
            return resnext(image_size=image_size or 224), _preprocessing("torch")
        if name == _LITE:
            # Not PictureScaling, which also says how a picture becomes a square: the data do.
            scaling = layers.Rescaling(1 / 128, offset=-127 / 128, name="preprocessing")
            return efficientnet_lite2(image_size or IMAGE_SIZE), scaling
        scratch = _tiny_layout if name == "tiny_layout" else _tiny
        return scratch(image_size or 64), _preprocessing("tf")
    application, mode = _APPLICATIONS[name]
    shape = (image_size or 224, image_size or 224, 3)
    if not imagenet:
        network = application(include_top=False, weights=None, input_shape=shape, name=name)
        return network, _preprocessing(mode)
    try:
        network = application(include_top=False, input_shape=shape, name=name)
    except Exception as error:  # keras.utils.get_file raises a bare Exception when offline
        raise InputError(
            f"the ImageNet weights of {name!r} could not be fetched ({error}); "
            "give the path of a local .h5 file instead, to a recipe as --image-weights FILE"
        ) from error
    return network, _preprocessing(mode)


def _preprocessing(mode):
    return ImagePreprocessing(mode, name="preprocessing")


def _tiny(image_size):
    """Four convolutions to a map of an eighth of the side, (size / 8, size / 8, 128)."""
    images = keras.Input((image_size, image_size, 3), name="images")
    features = images
    for index, (channels, strides) in enumerate(((32, 2), (64, 2), (96, 2), (128, 1))):
        convolution = layers.Conv2D(
            channels, 3, strides, padding="same", use_bias=False, name=f"convolution_{index}"
        )
        features = _rectified(convolution(features), index)
    return keras.Model(images, features, name="tiny")


def _tiny_layout(image_size):
    """Three convolutions and a dense layer over all places, which knows where parts are: (1, 1,
    256)."""
    images = keras.Input((image_size, image_size, 3), name="images")
    features = images
    for index, (channels, size, strides) in enumerate(((64, 4, 4), (128, 3, 2), (128, 3, 1))):
        convolution = layers.Conv2D(
            channels, size, strides, padding="same", use_bias=False, name=f"convolution_{index}"
        )
        features = _rectified(convolution(features), index)
    features = layers.AveragePooling2D(2, padding="same", name="quarters")(features)
    features = layers.Flatten(name="places")(features)
    features = _rectified(layers.Dense(256, use_bias=False, name="layout")(features), "layout")
    return keras.Model(
        images, layers.Reshape((1, 1, 256), name="map")(features), name="tiny_layout"
    )


def _rectified(features, name):
    # Momentum for runs of a few hundred steps, not for ImageNet's hundred thousands.
    features = layers.BatchNormalization(momentum=0.9, name=f"normalize_{name}")(features)
    return layers.ReLU(name=f"relu_{name}")(features)
