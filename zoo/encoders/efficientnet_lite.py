"""EfficientNet-Lite2: EfficientNet's blocks without squeeze-and-excitation and swish."""

import os
from collections.abc import Iterator

import keras
from keras import layers

from zoo.encoders.weight_arrays import COUNTERS, WeightArrays
from zoo.encoders.weight_layouts import Entry, convolution, fill, norm

# Of each stage: kernel, stride of its first block, expansion, channels, blocks.
STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 3),
    (5, 2, 6, 48, 3),
    (3, 2, 6, 88, 4),
    (5, 1, 6, 120, 4),
    (5, 2, 6, 208, 5),
    (3, 1, 6, 352, 1),
)
STEM, HEAD = 32, 1280  # channels, which the Lite variants do not scale
IMAGE_SIZE = 260


def efficientnet_lite2(image_size: int | None = IMAGE_SIZE) -> keras.Model:
    """EfficientNet-Lite2 without pooling and classifier, of images of a size, or None for any.

    Returns:
        A Functional `keras.Model` named `"efficientnet_lite2"` from images
        `(batch, size, size, 3)`, scaled to `(RGB − 127) / 128`, to features
        `(batch, size / 32, size / 32, 1280)`. `stage_layers` names the inner layers to pool.
    Reference: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural
        Networks", ICML 2019; the Lite variants are of the authors' repository.
    """
    images = keras.Input((image_size, image_size, 3), name="images")
    x = layers.Conv2D(STEM, 3, 2, padding="same", use_bias=False, name="stem")(images)
    x = _normalized(x, "stem", relu=True)
    number = 0
    for kernel, stride, expansion, channels, blocks in STAGES:
        for repeat in range(blocks):
            x = _block(x, f"block{number}", kernel, 1 if repeat else stride, expansion, channels)
            number += 1
    x = layers.Conv2D(HEAD, 1, use_bias=False, name="head")(x)
    return keras.Model(images, _normalized(x, "head", relu=True), name="efficientnet_lite2")


def stage_layers() -> tuple[str, ...]:
    """The names of the last depthwise outputs of the seven stages, for `mean_and_max`."""
    names, number = [], -1
    for *_, blocks in STAGES:
        number += blocks
        names.append(f"block{number}_depthwise_relu")
    return tuple(names)


def load_efficientnet_lite_weights(network: keras.Model, path: str | os.PathLike) -> None:
    """Copies weights with the names of EfficientNet-PyTorch into an `efficientnet_lite2`, of a
    `.safetensors` or `.npz` file in PyTorch's layouts.

    The classifier (`_fc`) and the counters of batches are left out. Raises InputError if there is
    no such file, an array is missing, left over, not finite, or has another shape than the
    network's.
    """
    arrays = WeightArrays(path, f"EfficientNet weights of {network.name!r}")
    fill(arrays, _entries(network), repr(network.name), (*COUNTERS, "_fc."))


def _block(x, name, kernel, stride, expansion, channels):
    """1 × 1 to wide, depthwise, 1 × 1 to narrow; the input is added where its shape stays."""
    entered, inner = x, x.shape[-1] * expansion
    if expansion > 1:
        x = layers.Conv2D(inner, 1, use_bias=False, name=f"{name}_expand")(x)
        x = _normalized(x, f"{name}_expand", relu=True)
    x = layers.DepthwiseConv2D(
        kernel, stride, padding="same", use_bias=False, name=f"{name}_depthwise"
    )(x)
    x = _normalized(x, f"{name}_depthwise", relu=True)
    x = layers.Conv2D(channels, 1, use_bias=False, name=f"{name}_project")(x)
    x = _normalized(x, f"{name}_project")
    if stride == 1 and entered.shape[-1] == channels:
        x = layers.Add(name=f"{name}_add")([x, entered])
    return x


def _normalized(x, name, relu=False):
    x = layers.BatchNormalization(momentum=0.99, epsilon=1e-3, name=f"{name}_normalize")(x)
    return layers.ReLU(6.0, name=f"{name}_relu")(x) if relu else x


def _entries(network: keras.Model) -> Iterator[Entry]:
    """The entries of the network in the names of its PyTorch file."""

    def pair(layer, place, number):
        yield from convolution(network.get_layer(layer), place)
        yield from norm(network.get_layer(f"{layer}_normalize"), number)

    yield from pair("stem", "_conv_stem", "_bn0")
    for number in range(sum(blocks for *_, blocks in STAGES)):
        block = f"_blocks.{number}"
        if number:  # the first does not expand
            yield from pair(f"block{number}_expand", f"{block}._expand_conv", f"{block}._bn0")
        depthwise = network.get_layer(f"block{number}_depthwise")
        yield Entry(
            depthwise.kernel,
            (f"{block}._depthwise_conv.weight",),
            lambda w: w.transpose(2, 3, 0, 1),  # channels, 1, h, w to h, w, channels, 1
        )
        yield from norm(network.get_layer(f"block{number}_depthwise_normalize"), f"{block}._bn1")
        yield from pair(f"block{number}_project", f"{block}._project_conv", f"{block}._bn2")
    yield from pair("head", "_conv_head", "_bn1")
