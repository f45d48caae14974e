"""Towers to one point an item, on the unit sphere: VSE++'s, VSRN's and KerasHub's.

`encoder.get_layer("backbone")` is the Keras model that makes the features.
"""

import keras

from halo_search.errors import InputError
from zoo.encoders.stored_features import positions
from zoo.layers.image_preprocessing import PictureScaling
from zoo.layers.masking import UnitLength
from zoo.layers.pooling import MeanPooling
from zoo.layers.region_reasoning import RegionReasoning, unit_over_regions

RELEASED = (None, "coco", "f30k")


def mean_image_encoder(backbone: keras.Model, dim: int, unit_features: bool = False) -> keras.Model:
    """Images to points: the mean of local features, of length one first where `unit_features`, a
    linear map, length one (VSE++, section 3.1)."""
    images = keras.Input(backbone.input_shape[1:], name="images")
    features, mask = positions(backbone(images))
    pooled = MeanPooling(name="pooling")(features, mask=mask)
    if unit_features:
        pooled = UnitLength(name="unit_features")(pooled)
    point = keras.layers.Dense(dim, name="embedding")(pooled)
    return _points(images, point, "image_encoder")


def reasoning_image_encoder(
    backbone: keras.Model, dim: int, num_layers: int = 4, released: str | None = None
) -> keras.Model:
    """Images to points: regions related by graph convolutions and read by a GRU (VSRN, section 3),
    with the normalisations as `released` for `"coco"` or `"f30k"`, or None. Else a ValueError."""
    if released not in RELEASED:
        raise ValueError(f"`released` must be one of {RELEASED}; received {released!r}")
    images = keras.Input(backbone.input_shape[1:], name="images")
    features, mask = positions(backbone(images))
    regions = keras.layers.Dense(dim, name="embedding")(features)
    if released == "coco":
        regions = unit_over_regions(regions)
    reasoning = RegionReasoning(num_layers, released is not None, name="reasoning")
    _, point = reasoning(regions, mask=mask)
    if released == "f30k":
        normalize = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="normalize")
        point = normalize(point)
    return _points(images, point, "image_encoder")


def sentence_caption_encoder(backbone: keras.Model, dim: int | None = None) -> keras.Model:
    """Captions to points `{"mean": (batch, dim)}`: the sentence of a recurrent network, or a linear
    map, of length one.

    Args:
        backbone: a `keras.Model` from ids to a dict with `"sentence"`, such as
            `zoo.encoders.gru(…, bidirectional=False)`; or to one with `"pooled"`, such as
            `zoo.encoders.vectors`, which a linear map projects to `dim` channels.
        dim: dimension of the embedding, for `"pooled"`.
    Reference: VSE++ (Faghri et al., BMVC 2018), section 3.1.
    """
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(ids)
    if "sentence" in output:
        sentence = output["sentence"]
    else:
        sentence = keras.layers.Dense(dim, name="embedding")(output["pooled"])
    return _points(ids, sentence, "caption_encoder")


HEAD = ("unit_variance_of_features", "embedding")  # the layers that `vector_encoder` trains


def vector_encoder(
    backbone: keras.Model, dim: int, drop_rate: float = 0.0, seed: int = 0, side: str = "images"
) -> keras.Model:
    """A frozen network's vectors to points: brought to unit variance, a linear map, length one.

    The towers of `halo train own_pairs`: `head_alone` of them trains on stored vectors, in seconds.

    ```python
    photos = zoo.encoders.mean_and_max(zoo.encoders.convolutional("mobilenet_v2"))
    tower = zoo.encoders.vector_encoder(photos, dim=256, drop_rate=0.7)
    ```

    Args:
        backbone: a `keras.Model` named `"backbone"` to vectors `(batch, width)`, or to a dict with
            them under `"pooled"`, such as `zoo.encoders.sentences`.
        dim: dimension of the embedding.
        drop_rate, seed: share of a vector's channels that a training step leaves out.
        side: `"images"` or `"captions"`, which names the tower.

    Returns:
        A Functional `keras.Model` from what the backbone takes to `{"mean": (batch, dim)}`.
    """
    inputs = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name=side)
    vector = backbone(inputs)
    vector = vector["pooled"] if isinstance(vector, dict) else vector
    # Of frozen features: batches of any training have the same statistics, which settle at once.
    vector = keras.layers.BatchNormalization(
        center=False, scale=False, momentum=0.9, dtype="float32", name=HEAD[0]
    )(vector)
    vector = keras.layers.Dropout(drop_rate, seed=seed, name="dropout")(vector)
    point = keras.layers.Dense(dim, name=HEAD[1])(vector)
    return _points(inputs, point, f"{side[:-1]}_encoder")


def hub_image_encoder(backbone: keras.Model, scaling: PictureScaling) -> keras.Model:
    """Images to points by a KerasHub backbone of both towers, whose layers are shared, after the
    scaling of pixels that it wants."""
    images = keras.Input(backbone.vision_encoder.image_shape, name="images")
    point = backbone.get_vision_embeddings(scaling(images))
    return _points(images, point, "image_encoder")


def hub_caption_encoder(backbone: keras.Model, max_length: int) -> keras.Model:
    """Ids `(batch, max_length)` to points, as `hub_image_encoder`. SigLIP reads the last id, so
    rows must be full."""
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    return _points(ids, backbone.get_text_embeddings(ids), "caption_encoder")


def hub_scaling(converter: keras.layers.Layer) -> PictureScaling:
    """What a KerasHub `ImageConverter` does to pixels once a picture has its size. Raises
    InputError if it pads pictures to a square."""
    if converter.pad_to_aspect_ratio:
        raise InputError(
            "the preset pads pictures to squares (`pad_to_aspect_ratio`); here they are cropped or "
            "stretched"
        )
    return PictureScaling(
        1.0 if converter.scale is None else converter.scale,
        0.0 if converter.offset is None else converter.offset,
        resize="crop" if converter.crop_to_aspect_ratio else "stretch",
        name="preprocessing",
    )


def resizing_of_tower(encoder: keras.layers.Layer) -> dict:
    """How pictures are to be shown to an image encoder that says it, for `zoo.data.images.prepare`.
    Returns `{"mode", "crop_fraction"}`, or an empty dict of an encoder that says nothing."""
    for layer in getattr(encoder, "layers", ()):
        if isinstance(layer, PictureScaling):
            return {"mode": layer.resize, "crop_fraction": layer.crop_fraction}
        if shown := resizing_of_tower(layer):  # of a backbone
            return shown
    return {}


def _points(inputs, features, name):
    """A model of points of unit length, {"mean": (batch, dim)}."""
    return keras.Model(inputs, {"mean": UnitLength(name="unit_length")(features)}, name=name)
