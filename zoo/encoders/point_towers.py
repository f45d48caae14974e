"""The towers of VSE++ and VSRN: one point an item, on the unit sphere.

`encoder.get_layer("backbone")` is the Keras model that makes the features.
"""

import keras

from zoo.encoders.image_features import positions
from zoo.layers.masking import UnitLength
from zoo.layers.pooling import MeanPooling
from zoo.layers.region_reasoning import RegionReasoning, unit_over_regions

RELEASED = (None, "coco", "f30k")


def mean_image_encoder(backbone: keras.Model, dim: int, unit_features: bool = False) -> keras.Model:
    """Images to points: the mean of the local features, a linear map, length one.

    Args:
        backbone: a `keras.Model` from images to local features, see `positions`.
        dim: dimension of the embedding.
        unit_features: whether the mean of the features has length one before the map too.

    Returns:
        A Functional `keras.Model` from images to `{"mean": (batch, dim)}`.

    Reference: VSE++ (Faghri et al., BMVC 2018), section 3.1.
    """
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
    """Images to points: regions projected, related by graph convolutions, read by a GRU.

    Args:
        backbone: a `keras.Model` from images to local features, see `positions`: detected regions
            or the cells of a feature map.
        dim: dimension of the embedding.
        num_layers: graph convolutions.
        released: `"coco"` or `"f30k"` for the released code's normalisations of that data set;
            None for the paper's.

    Returns:
        A Functional `keras.Model` from images to `{"mean": (batch, dim)}`. The first output of its
        layer `"reasoning"` is the related regions.

    Raises:
        ValueError: on an unknown data set.

    Reference: VSRN (Li et al., ICCV 2019), sections 3.1 to 3.3.
    """
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
    """Captions to points: the sentence of a recurrent network, or a linear map, of length one.

    Args:
        backbone: a `keras.Model` from ids to a dict with `"sentence"`, such as
            `zoo.encoders.gru(…, bidirectional=False)`; or to one with `"pooled"`, such as
            `zoo.encoders.vectors`, which a linear map takes to `dim` channels.
        dim: dimension of the embedding, for `"pooled"`.

    Returns:
        A Functional `keras.Model` from what the backbone takes to `{"mean": (batch, dim)}`.

    Reference: VSE++ (Faghri et al., BMVC 2018), section 3.1.
    """
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(ids)
    if "sentence" in output:
        sentence = output["sentence"]
    else:
        sentence = keras.layers.Dense(dim, name="embedding")(output["pooled"])
    return _points(ids, sentence, "caption_encoder")


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
        drop_rate: share of a vector's channels that a training step leaves out.
        seed: of that.
        side: `"images"` or `"captions"`, which names the tower.

    Returns:
        A Functional `keras.Model` from what the backbone takes to `{"mean": (batch, dim)}`.
    """
    inputs = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name=side)
    vector = backbone(inputs)
    vector = vector["pooled"] if isinstance(vector, dict) else vector
    # Of frozen features: batches of any training have the same statistics, which settle at once.
    vector = keras.layers.BatchNormalization(
        center=False, scale=False, momentum=0.9, dtype="float32", name="unit_variance_of_features"
    )(vector)
    vector = keras.layers.Dropout(drop_rate, seed=seed, name="dropout")(vector)
    point = keras.layers.Dense(dim, name="embedding")(vector)
    return _points(inputs, point, f"{side[:-1]}_encoder")


def _points(inputs, features, name):
    return keras.Model(inputs, {"mean": UnitLength(name="unit_length")(features)}, name=name)
