"""Convolutional image encoders: images to a map of local features."""

import os
import pathlib

import keras
from keras import layers

from zoo.encoders.resnext import load_torchvision_weights, resnext
from zoo.encoders.weight_files import NPZ, SAFETENSORS, load_weights
from zoo.errors import InputError
from zoo.layers.image_preprocessing import ImagePreprocessing

# name: (constructor, mode of preprocessing)
_APPLICATIONS = {
    "resnet50": (keras.applications.ResNet50, "caffe"),
    "resnet101": (keras.applications.ResNet101, "caffe"),
    "resnet152": (keras.applications.ResNet152, "caffe"),
    "mobilenet_v2": (keras.applications.MobileNetV2, "tf"),
}
_RESNEXT = "resnext101_32x8d"
FROM_SCRATCH = ("tiny", "tiny_layout")  # there are no weights of these
CONVOLUTIONAL = (*_APPLICATIONS, _RESNEXT, *FROM_SCRATCH)


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
    | `"tiny"` | 0.19 M | 64 | 8 × 8 × 128 |
    | `"tiny_layout"` | 0.75 M | 64 | 1 × 1 × 256 |

    `"tiny"` and `"tiny_layout"` are for Toy Birds, from scratch. They have BatchNorm as the others:
    with GroupNorm, images start out nearly alike, and a contrastive loss stays at chance for
    hundreds of steps. A cell of `"tiny"` does not know where it is, so its pooled map cannot tell a
    red crown from a red tail; the one feature of `"tiny_layout"` has weights for every place.

    Args:
        name: one of the above.
        image_size: height and width of the images, or None for the default.
        weights: `"imagenet"` (fetched once by Keras, which has none of ResNeXt), the path of a
            `.weights.h5` or `.h5` file of the network without classifier, for ResNeXt also of a
            `.safetensors` or `.npz` file with torchvision's names, or None for random ones.
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
        CVPR 2018 (MobileNetV2).
    """
    if name not in CONVOLUTIONAL:
        raise ValueError(f"`name` must be one of {CONVOLUTIONAL}; received {name!r}")
    network, mode = _network(name, image_size, imagenet=weights == "imagenet")
    if weights not in (None, "imagenet"):
        if name == _RESNEXT and pathlib.PurePath(weights).suffix in (SAFETENSORS, NPZ):
            load_torchvision_weights(network, weights)
        else:
            load_weights(network, weights)
    images = keras.Input(network.input_shape[1:], name="images")
    features = network(ImagePreprocessing(mode, name="preprocessing")(images))
    backbone = keras.Model(images, features, name="backbone")
    backbone.trainable = trainable
    return backbone


def backbone_of_file(path: str | os.PathLike | None) -> str | None:
    """The name of the network that a weights file is named after, or None.

    `mobilenetv2_imagenet_notop.weights.h5` and `resnet50_weights_tf.h5` say what they are.
    """
    stem = pathlib.PurePath(str(path)).name.lower().replace("_", "")
    names = (*_APPLICATIONS, _RESNEXT)
    return next((name for name in names if name.replace("_", "") in stem), None)


def _network(name, image_size, imagenet):
    """The network, and the mode of preprocessing that it expects."""
    if name not in _APPLICATIONS:
        if imagenet:
            raise InputError(f"the network {name!r} has no ImageNet weights; give a path or none")
        if name == _RESNEXT:
            return resnext(image_size=image_size or 224), "torch"
        return (_tiny_layout if name == "tiny_layout" else _tiny)(image_size or 64), "tf"
    application, mode = _APPLICATIONS[name]
    shape = (image_size or 224, image_size or 224, 3)
    if not imagenet:
        return application(include_top=False, weights=None, input_shape=shape, name=name), mode
    try:
        return application(include_top=False, input_shape=shape, name=name), mode
    except Exception as error:  # keras.utils.get_file raises a bare Exception when offline
        raise InputError(
            f"the ImageNet weights of {name!r} could not be fetched ({error}); "
            "give the path of a local .h5 file instead, to a recipe as --image-weights FILE"
        ) from error


def _tiny(image_size):
    images = keras.Input((image_size, image_size, 3), name="images")
    features = images
    for index, (channels, strides) in enumerate(((32, 2), (64, 2), (96, 2), (128, 1))):
        convolution = layers.Conv2D(
            channels, 3, strides, padding="same", use_bias=False, name=f"convolution_{index}"
        )
        features = _rectified(convolution(features), index)
    return keras.Model(images, features, name="tiny")


def _tiny_layout(image_size):
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
