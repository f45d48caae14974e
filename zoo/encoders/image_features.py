"""What an image encoder starts from: a network over pixels, or features that exist."""

import os
from collections.abc import Sequence
from typing import TypeAlias

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.encoders.convolutional import convolutional

ImageBackbone: TypeAlias = (
    str | keras.Model | tuple[int, ...]
)  # a name, a network, a shape of features


def image_features(
    backbone: ImageBackbone, image_size: int | None = None, weights: str | os.PathLike | None = None
) -> keras.Model:
    """The backbone of an image encoder, by whatever a builder was given.

    Args:
        backbone: a name of `zoo.encoders.convolutional`; a `keras.Model` from images to features,
            which is taken as it is; or the shape of precomputed features, `(num_regions, dim)` for
            detected regions or `(dim,)` for one vector an image; else a ValueError.
        image_size, weights: of `convolutional`, for a name.

    Returns:
        A `keras.Model` named `"backbone"`. That of a shape passes the features on:
        `{"features": (batch, num_regions, dim), "mask"}`, where a region that is all zero is
        padding (bool, True for regions); one vector is one region.
    """
    if isinstance(backbone, keras.Model):
        return backbone
    if isinstance(backbone, str):
        return convolutional(backbone, image_size, weights)
    shape = tuple(backbone)
    if len(shape) not in (1, 2):
        raise ValueError(
            "`image_backbone` must be a name, a keras.Model, or a shape (num_regions, dim) or "
            f"(dim,); received {backbone!r}"
        )
    features = keras.Input(shape, name="features")
    regions = features if len(shape) == 2 else keras.layers.Reshape((1, *shape))(features)
    mask = ops.any(ops.not_equal(regions, 0), axis=-1)
    return keras.Model(features, {"features": regions, "mask": mask}, name="backbone")


def positions(output: Embedding | Tensor) -> tuple[Tensor, Tensor | None]:
    """Local features of a backbone's output, `(batch, positions, channels)`, and their mask or
    None. The output is a map, a sequence, or a dict with `"features"` and `"mask"`."""
    mask = None
    if isinstance(output, dict):
        output, mask = output["features"], output.get("mask")
    if len(output.shape) == 4:
        output = keras.layers.Reshape((-1, output.shape[-1]), name="positions")(output)
    return output, mask


def mean_and_max(backbone: keras.Model, layers: Sequence[str] = ()) -> keras.Model:
    """A convolutional backbone whose maps are pooled in two ways: what is there on the whole, and
    what is anywhere.

    ```python
    network = zoo.encoders.convolutional("mobilenet_v2", trainable=False)
    zoo.encoders.mean_and_max(network, ["block_13_expand_relu"])  # to (batch, 2 · (576 + 1280))
    ```

    Args:
        backbone: what `zoo.encoders.convolutional` returns.
        layers: names of inner layers of its network (else a ValueError) whose maps are pooled
            beside the last one.

    Returns:
        A Functional `keras.Model` named `"backbone"` from images to one vector
        `(batch, 2 · channels)`: mean and maximum of each of `layers`, then of the last map.

    Reference: Vilalta et al., "Full-Network Embedding in a Multimodal Embedding Pipeline", 2017,
        for layers side by side.
    """
    network = next(layer for layer in backbone.layers if isinstance(layer, keras.Model))
    maps = [*(network.get_layer(name).output for name in layers), network.output]
    inner = keras.Model(network.input, maps, name=network.name)
    images = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="images")
    found = inner(backbone.get_layer("preprocessing")(images))
    found = found if isinstance(found, (list, tuple)) else [found]
    pooled = [part for one in found for part in (ops.mean(one, (1, 2)), ops.max(one, (1, 2)))]
    model = keras.Model(images, ops.concatenate(pooled, axis=-1), name="backbone")
    model.trainable = backbone.trainable
    return model


def side_by_side(*backbones: keras.Model) -> keras.Model:
    """Several networks of one picture size as one: their vectors, one after the other.

    ```python
    names = ("mobilenet_v2", "efficientnet_lite2")
    networks = [zoo.encoders.mean_and_max(zoo.encoders.convolutional(name, 240)) for name in names]
    zoo.encoders.side_by_side(*networks)  # to (batch, 2 · (1280 + 1280))
    ```

    Args:
        backbones: models from images of the same size (else a ValueError) to one vector each, see
            `mean_and_max`.

    Returns:
        A Functional `keras.Model` named `"backbone"` from images to one vector `(batch, sum of the
        widths)`. Its layers `"backbone_0"`, `"backbone_1"`, … are the networks.
    """
    sizes = {backbone.input_shape[1:] for backbone in backbones}
    if len(sizes) != 1:
        raise ValueError(f"`backbones` must take images of one size; received {sorted(sizes)}")
    images = keras.Input(sizes.pop(), dtype=backbones[0].input.dtype, name="images")
    vectors = []
    for number, backbone in enumerate(backbones):
        renamed = keras.Model(backbone.input, backbone.output, name=f"backbone_{number}")
        renamed.trainable = backbone.trainable
        vectors.append(renamed(images))
    model = keras.Model(images, ops.concatenate(vectors, axis=-1), name="backbone")
    model.trainable = any(backbone.trainable for backbone in backbones)
    return model
