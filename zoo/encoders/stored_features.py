"""What an image encoder starts from: a network, stored features, a head without its backbone."""

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

import keras
from keras import layers, ops

from zoo.embeddings import Embedding, Tensor
from zoo.embeddings.layer import Layer
from zoo.encoders.convolutional import convolutional
from zoo.layers.masking import UnitLength, drop_positions, masked_max


def vectors(dim: int, normalize: bool = False, positions: int = 1) -> keras.Model:
    """Stored vectors in place of pictures or words, for either tower of every builder. Raises
    ValueError if a size is no whole number of at least 1.

    ```python
    model = zoo.models.pcmepp(
        zoo.encoders.vectors(512), caption_backbone=zoo.encoders.vectors(512), dim=512
    )
    ```

    Args:
        dim: channels of a vector.
        normalize: whether vectors are brought to unit length first, so that a model takes them
            with any length, when it is served too.
        positions: local features a vector. One is the vector itself; more are learned linear maps
            of it, for what chooses among local features, such as the slots of DivE.

    Returns:
        A Functional `keras.Model` named `"backbone"` from float `(batch, dim)` to a dict:
        `"features"` `(batch, positions, dim)`, `"pooled"` `(batch, dim)`, the vector, and
        `"mask"` bool `(batch, positions)`, always True.
    """
    for name, value in (("dim", dim), ("positions", positions)):
        if value != int(value) or value < 1:
            raise ValueError(f"`{name}` must be a whole number of at least 1; received {value!r}")
    inputs = keras.Input((dim,), name="vectors")
    vector = UnitLength(name="unit_length")(inputs) if normalize else inputs
    local = vector
    if positions > 1:
        local = layers.Dense(positions * dim, name="projections")(vector)
    features = layers.Reshape((positions, dim), name="positions")(local)
    mask = ops.ones_like(features[:, :, 0], dtype="bool")
    outputs = {"features": features, "pooled": vector, "mask": mask}
    return keras.Model(inputs, outputs, name="backbone")


def regions(
    region_dim: int,
    dim: int,
    num_regions: int | None = None,
    dropout: float = 0.0,
    drop_rate: float = 0.0,
    seed: int | None = None,
) -> keras.Model:
    """A linear map of each region plus a two-layer MLP on it, and the maximum over the regions.

    Args:
        region_dim: channels of a region's feature.
        dim: channels of what comes out (D).
        num_regions: regions an image, where it is one number, or None. An image with fewer is
            filled up with rows of zeros, which change nothing.
        dropout: share of the output's numbers that a training step zeroes.
        drop_rate: share of the regions that a training step leaves out.
        seed: of both.

    Returns:
        A Functional `keras.Model` named `"backbone"` from regions `(batch, num_regions,
        region_dim)` to a dict: `"features"` `(batch, num_regions, dim)`, `"pooled"` their maximum
        `(batch, dim)`, `"mask"` bool `(batch, num_regions)`, True where there is a region.
    Reference: DivE (Kim et al., CVPR 2023), section 3.1; VSE∞ (Chen et al., CVPR 2021) for the
        residual MLP with BatchNorm.
    """
    inputs = keras.Input((num_regions, region_dim), name="images")
    mask = RegionMask(drop_rate, seed, name="mask")(inputs)
    linear = layers.Dense(dim, name="projection")(inputs)
    hidden = layers.Dense(max(dim // 2, 1), name="hidden")(linear)
    normalize = layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="normalize")
    hidden = layers.ReLU(name="relu")(normalize(hidden, mask=mask))
    features = linear + layers.Dense(dim, name="residual")(hidden)
    features = layers.Dropout(dropout, seed=seed, name="dropout")(features)
    outputs = {"features": features, "pooled": masked_max(features, mask), "mask": mask}
    return keras.Model(inputs, outputs, name="backbone")


def regions_and_hidden(region_dim: int, hidden_dim: int) -> keras.Model:
    """Regions beside the hidden layer of an MLP on them: a linear map of both is VSE∞'s
    residual."""
    inputs = keras.Input((None, region_dim), name="images")
    mask = RegionMask(name="mask")(inputs)
    hidden = layers.Dense(hidden_dim, name="hidden")(inputs)
    normalize = layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="normalize")
    hidden = layers.ReLU(name="relu")(normalize(hidden, mask=mask))
    outputs = {"features": ops.concatenate([inputs, hidden], axis=-1), "mask": mask}
    return keras.Model(inputs, outputs, name="backbone")


@keras.saving.register_keras_serializable(package="halo")
class RegionMask(Layer):
    """Bool `(batch, num_regions)`, True for rows of the regions that are not all zeros. A training
    step leaves out `drop_rate` of them, never all of an image."""

    def __init__(self, drop_rate: float = 0.0, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= drop_rate < 1:
            raise ValueError(f"`drop_rate` must be in [0, 1); received {drop_rate}")
        self.drop_rate = drop_rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if drop_rate else None
        self.built = True

    def call(self, regions: Tensor, training: bool = False) -> Tensor:
        mask = ops.any(ops.not_equal(regions, 0.0), axis=-1)
        if training and self.drop_rate:
            mask = drop_positions(ops.shape(mask), mask, self.drop_rate, self.seed_generator)
        return mask


def replay(encoder, is_wanted):
    """A model with the encoder's own layers, and symbolic outputs of those that are wanted, by
    layer. `keras.Model(model.input, {**model.output, "more": output})` gives both."""
    outputs = {}

    def call(layer, *args, **kwargs):
        output = layer(*args, **kwargs)
        if is_wanted(layer):
            outputs[layer] = output
        return output

    model = keras.models.clone_model(
        encoder, clone_function=lambda layer: layer, call_function=call
    )
    return model, outputs


def head_alone(encoder: keras.Model) -> keras.Model:
    """What follows the backbone of an encoder, as a model of the backbone's features `(batch, …)`,
    with the weights of the encoder.

    ```python
    model = zoo.models.infonce("mobilenet_v2", tokenizer)
    heads = model.with_image_encoder(zoo.encoders.head_alone(model.image_encoder))
    ```

    Args:
        encoder: an encoder of one of the builders, whose `"backbone"` gives one array of features,
            or a dict of which only `"pooled"` is read, as by `vector_encoder`; else a ValueError.
    """
    backbone = next((layer for layer in encoder.layers if layer.name == "backbone"), None)
    several = backbone is not None and isinstance(backbone.output, dict)
    if backbone is None or (several and "pooled" not in backbone.output):
        feature_names = None if backbone is None else sorted(backbone.output)
        raise ValueError(
            "`encoder` must have a backbone with one output, such as a convolutional one; "
            f"received one with {feature_names or 'no backbone'}"
        )
    inputs, outputs = replay(encoder, lambda layer: layer is backbone)
    read = outputs[backbone]["pooled"] if several else outputs[backbone]
    try:
        return keras.Model(read, inputs.output, name=encoder.name.replace("encoder", "head"))
    except ValueError as error:  # another output of the backbone is read too
        raise ValueError(
            f"`encoder` must read nothing of its backbone but one output; {error}"
        ) from error


# A name, a network, a shape of features.
ImageBackbone: TypeAlias = str | keras.Model | tuple[int, ...]


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
    feature_maps = inner(backbone.get_layer("preprocessing")(images))
    feature_maps = feature_maps if isinstance(feature_maps, (list, tuple)) else [feature_maps]
    pooled = [
        part
        for feature_map in feature_maps
        for part in (ops.mean(feature_map, (1, 2)), ops.max(feature_map, (1, 2)))
    ]
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
