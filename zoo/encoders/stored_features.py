"""Stored features: backbones that read them, and an encoder's head without its backbone."""

from typing import Any

import keras
from keras import layers, ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.masking import UnitLength, drop_positions, masked_max


def vectors(dim: int, normalize: bool = False, positions: int = 1) -> keras.Model:
    """Stored vectors in place of pictures or words, for either tower of every builder.

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

    Raises:
        ValueError: if a size is no whole number of at least 1.
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
        found = None if backbone is None else sorted(backbone.output)
        raise ValueError(
            "`encoder` must have a backbone with one output, such as a convolutional one; "
            f"received one with {found or 'no backbone'}"
        )
    whole, outputs = replay(encoder, lambda layer: layer is backbone)
    read = outputs[backbone]["pooled"] if several else outputs[backbone]
    try:
        return keras.Model(read, whole.output, name=encoder.name.replace("encoder", "head"))
    except ValueError as error:  # another output of the backbone is read too
        raise ValueError(
            f"`encoder` must read nothing of its backbone but one output; {error}"
        ) from error
