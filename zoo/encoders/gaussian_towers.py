"""Towers to Gaussians: PCME's, and those of PCME++ that pool by rank.

`encoder.get_layer("backbone")` and `encoder.get_layer("head")` are Keras models, so that a head
can be trained on stored features of a frozen backbone.
"""

from typing import Any

import keras

from zoo.layers.gaussian_head import GaussianHead
from zoo.layers.pooled_gaussian_head import PooledGaussianHead
from zoo.layers.pooling import MeanPooling
from zoo.layers.sentence_gru import SentenceGRU


def gaussian_image_encoder(backbone: keras.Model, dim: int, **head: Any) -> keras.Model:
    """Images to Gaussians `{"mean", "log_variance"}`, as PCME's figure 3 (a), of the sub-models
    `"backbone"`, to local features or a dict with `"features"`, and `"head"`, a `GaussianHead`."""
    images = keras.Input(backbone.input_shape[1:], name="images")
    output = backbone(images)
    output = output["features"] if isinstance(output, dict) else output
    features = keras.Input(output.shape[1:], name="features")
    local = keras.layers.Reshape((-1, features.shape[-1]), name="positions")(features)
    pooled = keras.layers.GlobalAveragePooling1D(name="pooling")(local)
    embedding = GaussianHead(dim, name="gaussian", **head)(local, pooled)
    head_model = keras.Model(features, embedding, name="head")
    return keras.Model(images, head_model(output), name="image_encoder")


def gaussian_caption_encoder(
    backbone: keras.Model,
    dim: int,
    variance_gru: bool | None = None,
    at_last_word: bool = False,
    **head: Any,
) -> keras.Model:
    """Like `gaussian_image_encoder`, for captions (figure 3 (b)).

    With `variance_gru`, or None and a recurrent backbone, the log variance has a second GRU; else
    it is linear in the mean's sentence.
    """
    recurrent = "words" in backbone.output
    names = ("words", "sentence", "mask") if recurrent else ("features", "mask")
    inputs = {
        name: keras.Input(
            backbone.output[name].shape[1:], name=name, dtype=backbone.output[name].dtype
        )
        for name in names
    }
    local, mask = inputs[names[0]], inputs["mask"]
    variance_gru = recurrent if variance_gru is None else variance_gru
    if recurrent:
        sentence = inputs["sentence"]
    else:
        sentence = MeanPooling(name="pooling")(local, mask=mask)
        if variance_gru:
            sentence = keras.layers.Dense(dim, name="sentence")(sentence)
    width, variance_sentence = sentence.shape[-1], None
    if variance_gru and head.get("covariance", "ellipsoidal") is not None:
        reader = SentenceGRU(width, at_last_word=at_last_word, name="variance_gru")
        _, variance_sentence = reader(local, mask=mask)
    project = not variance_gru or width != dim
    gaussian = GaussianHead(dim, project_pooled=project, name="gaussian", **head)
    embedding = gaussian(local, sentence, variance_sentence, mask=mask)
    head_model = keras.Model(inputs, embedding, name="head")
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    features = backbone(ids)
    outputs = head_model({name: features[name] for name in names})
    return keras.Model(ids, outputs, name="caption_encoder")


def pooled_image_encoder(backbone: keras.Model, dim: int, **head: Any) -> keras.Model:
    """Images to Gaussians, points with `covariance=None`, by a `PooledGaussianHead` over
    `"features"`, and perhaps `"variance_features"` and `"mask"`, of a backbone (PCME++, section
    2.5)."""
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
    """As `pooled_image_encoder`, of ids `(batch, length)` and a backbone to `{"states", "mask"}` or
    `{"features", "variance_features", "mask"}`."""
    ids = keras.Input(backbone.input_shape[1:], dtype=backbone.input.dtype, name="captions")
    output = backbone(ids)
    features = output["features"] if "features" in output else output["states"]
    embedding = PooledGaussianHead(dim, name="head", **head)(
        features, output.get("variance_features"), mask=output["mask"]
    )
    return keras.Model(ids, embedding, name="caption_encoder")


def _positions(features, name):
    """Features as (batch, positions, channels), also those of a map."""
    if len(features.shape) == 3:
        return features
    return keras.layers.Reshape((-1, features.shape[-1]), name=name)(features)
