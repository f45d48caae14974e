"""The towers of SGRAF: sequences of regions and of words, each token of length one.

`encoder.get_layer("backbone")` is the Keras model that makes the features.
"""

import keras
from keras import layers, ops

from zoo.encoders.image_features import positions
from zoo.layers.attention import GlobalAttention
from zoo.layers.masking import UnitLength


def region_token_encoder(
    backbone: keras.Model, dim: int, dropout: float = 0.4, seed: int | None = None
) -> keras.Model:
    """Images to token sequences: regions projected, and what they attend to together.

    Args:
        backbone: a `keras.Model` from images to local features, see `positions`: a fixed number of
            detected regions, or the cells of a feature map.
        dim: channels of a token.
        dropout, seed: of `zoo.layers.GlobalAttention`.

    Returns:
        A Functional `keras.Model` from images to `{"tokens", "mask", "pooled"}`: `(batch,
        num_regions, dim)`, zero where there is no region, bool `(batch, num_regions)` and
        `(batch, dim)`.

    Reference: SGRAF (Diao et al., AAAI 2021), section 3.1.
    """
    images = keras.Input(backbone.input_shape[1:], name="images")
    features, mask = positions(backbone(images))
    if mask is None:
        mask = ops.ones_like(features[:, :, 0], dtype="bool")
    projected = layers.Dense(dim, name="projection")(features)
    return _sequences(images, projected, mask, "image_encoder", True, dropout, seed)


def word_token_encoder(
    backbone: keras.Model,
    dropout: float = 0.4,
    seed: int | None = None,
    dim: int | None = None,
) -> keras.Model:
    """Captions to token sequences: the states of a network over words, and what they attend to.

    Args:
        backbone: a `keras.Model` from ids to `{"states", "mask"}`, such as `zoo.encoders.gru(…,
            merge="ave")`, or to `{"features", "mask"}`, such as `zoo.encoders.bert`.
        dropout, seed: of `zoo.layers.GlobalAttention`.
        dim: channels of a token, to which features of another width are projected; None leaves
            them as they are.

    Returns:
        A Functional `keras.Model` from ids `(batch, length)` to what `region_token_encoder` gives.

    Reference: SGRAF (Diao et al., AAAI 2021), section 3.1.
    """
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(ids)
    features = output["states"] if "states" in output else output["features"]
    if dim is not None and features.shape[-1] != dim:
        features = layers.Dense(dim, name="projection")(features)
    return _sequences(ids, features, output["mask"], "caption_encoder", False, dropout, seed)


def _sequences(inputs, features, mask, name, normalize, dropout, seed):
    unit = UnitLength(name="unit_length")(features)
    tokens = ops.where(ops.expand_dims(mask, -1), unit, 0.0)
    pooling = GlobalAttention(normalize, dropout, seed, name="pooling")
    outputs = {"tokens": tokens, "mask": mask, "pooled": pooling(tokens, mask=mask)}
    return keras.Model(inputs, outputs, name=name)
