"""The towers of PCME++, VSE∞ and InfoNCE: all tokens of a backbone, pooled by rank.

`encoder.get_layer("backbone")` and `encoder.get_layer("head")` are a Keras model and a layer.
"""

from typing import Any

import keras

from zoo.layers.pooled_gaussian_head import PooledGaussianHead


def pooled_image_encoder(backbone: keras.Model, dim: int, **head: Any) -> keras.Model:
    """Images to pooled Gaussian embeddings, or points.

    Args:
        backbone: a `keras.Model` from images to local features `(batch, height, width, channels)`
            or `(batch, positions, channels)`, such as `zoo.encoders.convolutional`; or to a dict
            of `"features"`, and perhaps `"variance_features"` and `"mask"`, such as
            `zoo.encoders.clip_image`.
        dim: dimension of the embedding.
        **head: options of `PooledGaussianHead`; `covariance=None` gives points.

    Returns:
        A Functional `keras.Model` from images to `{"mean", "log_variance"}`, each `(batch, dim)`,
        or `{"mean"}`, of the parts `"backbone"` and `"head"`.

    Reference: PCME++ (Chun, ICLR 2024), section 2.5.
    """
    images = keras.Input(backbone.input_shape[1:], name="images")
    output = backbone(images)
    if not isinstance(output, dict):
        output = {"features": output}
    features = _positions(output["features"], "positions")
    variance_features = output.get("variance_features")
    if variance_features is not None:
        variance_features = _positions(variance_features, "variance_positions")
    embedding = PooledGaussianHead(dim, name="head", **head)(
        features, variance_features, mask=output.get("mask")
    )
    return keras.Model(images, embedding, name="image_encoder")


def pooled_caption_encoder(backbone: keras.Model, dim: int, **head: Any) -> keras.Model:
    """Captions to pooled Gaussian embeddings, or points.

    Args:
        backbone: a `keras.Model` from ids to `{"states", "mask"}`, such as `zoo.encoders.gru`, or
            to `{"features", "variance_features", "mask"}`, such as `zoo.encoders.clip_text`.
        dim: dimension of the embedding.
        **head: options of `PooledGaussianHead`; `covariance=None` gives points.

    Returns:
        A Functional `keras.Model` from ids `(batch, length)` to `{"mean", "log_variance"}`, each
        `(batch, dim)`, or `{"mean"}`, of the parts `"backbone"` and `"head"`.

    Reference: PCME++ (Chun, ICLR 2024), section 2.5.
    """
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(ids)
    features = output["features"] if "features" in output else output["states"]
    embedding = PooledGaussianHead(dim, name="head", **head)(
        features, output.get("variance_features"), mask=output["mask"]
    )
    return keras.Model(ids, embedding, name="caption_encoder")


def _positions(features, name):
    if len(features.shape) == 3:
        return features
    return keras.layers.Reshape((-1, features.shape[-1]), name=name)(features)
