"""Models of points that train nothing: stored vectors, and the means of other models."""

import json
import os
from typing import Any

import keras

from zoo import similarities
from zoo.encoders.stored_features import vectors
from zoo.losses import InfoNCE
from zoo.models.dual_encoder import DualEncoder
from zoo.models.inputs import check_gives_points
from zoo.models.preset_folder import write_preset
from zoo.similarities import Cosine

POINTS_FILE = "points_of.json"


def points_of(model: DualEncoder) -> DualEncoder:
    """The means of a `DualEncoder` of Gaussians as a model of points, compared by cosine. It shares
    the weights: `photos_points` is this of `photos_pfe`, and has no file of its own."""
    towers = (
        keras.Model(tower.input, {"mean": tower.output["mean"]}, name=tower.name)
        for tower in (model.image_encoder, model.caption_encoder)
    )
    return DualEncoder(
        *towers, similarity=Cosine(), loss=InfoNCE(), tokenizer=model.tokenizer, name="points"
    )


def frozen_points(model: DualEncoder) -> DualEncoder:
    """A model of points whose towers are one layer each, `"backbone"`, for heads over its points.
    Raises ValueError if its embeddings are not points, or its encoders not Functional."""

    def wrapped(encoder, name):
        check_gives_points(encoder, name)
        backbone = keras.Model(encoder.input, encoder.output["mean"], name="backbone")
        read = keras.Input(encoder.input_shape[1:], dtype=encoder.input.dtype, name="input")
        point = keras.layers.Identity(dtype="float32", name="point")(backbone(read))
        return keras.Model(read, {"mean": point}, name=name)

    return DualEncoder(
        wrapped(model.image_encoder, "image_encoder"),
        wrapped(model.caption_encoder, "caption_encoder"),
        similarity=model.similarity,
        loss=InfoNCE(),
        tokenizer=model.tokenizer,
        name="frozen",
    )


def save_points(path: str | os.PathLike, of: str, card: dict[str, Any]) -> None:
    """Writes a preset without weights that is `points_of` the preset `of` in the same folder.
    Raises InputError if the folder exists."""

    def write(folder):
        text = json.dumps({"points_of": of}) + "\n"
        (folder / POINTS_FILE).write_text(text, encoding="utf-8")

    write_preset(path, write, card)


def vector_points(dim: int) -> DualEncoder:
    """Vectors of images and captions as they are, of `dim` channels, compared by cosine: with it
    evaluation, calibration, reports, indexes and exports take embeddings that another model has
    made.

    ```python
    model = zoo.models.vector_points(512)
    model.encode_images(np.eye(512))  # (512, 512), of length one
    ```
    """
    return DualEncoder(
        _as_it_is(dim, "image_encoder"),
        _as_it_is(dim, "caption_encoder"),
        similarity=similarities.Cosine(),
        name="vector_points",
    )


def _as_it_is(dim, name):
    """An encoder that returns vectors (batch, dim) at unit length."""
    backbone = vectors(dim, normalize=True)
    inputs = keras.Input((dim,), name=name.partition("_")[0] + "s")
    return keras.Model(inputs, {"mean": backbone(inputs)["pooled"]}, name=name)
