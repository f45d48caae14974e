"""The two towers of a KerasHub dual encoder, as Functional models to points of length one."""

import keras

from zoo.errors import InputError
from zoo.layers.image_preprocessing import PictureScaling
from zoo.layers.masking import UnitLength


def hub_image_encoder(backbone: keras.Model, scaling: PictureScaling) -> keras.Model:
    """Images to points by a KerasHub backbone of CLIP, SigLIP or MetaCLIP 2.

    Args:
        backbone: the KerasHub model of both towers, whose layers are shared.
        scaling: pixels as the backbone wants them.

    Returns:
        A Functional `keras.Model` from images `(batch, height, width, 3)`, 0…255, to
        `{"mean": (batch, dim)}`.
    """
    images = keras.Input(backbone.vision_encoder.image_shape, name="images")
    point = backbone.get_vision_embeddings(scaling(images))
    return _points(images, point, "image_encoder")


def hub_caption_encoder(backbone: keras.Model, max_length: int) -> keras.Model:
    """Token ids to points by a KerasHub backbone of CLIP, SigLIP or MetaCLIP 2.

    Args:
        backbone: as of `hub_image_encoder`.
        max_length: length of a caption in ids. SigLIP reads the last one, so rows must be full.

    Returns:
        A Functional `keras.Model` from ids `(batch, max_length)` to `{"mean": (batch, dim)}`.
    """
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    return _points(ids, backbone.get_text_embeddings(ids), "caption_encoder")


def hub_scaling(converter: keras.layers.Layer) -> PictureScaling:
    """What a KerasHub `ImageConverter` does to pixels once a picture has its size.

    Raises:
        InputError: if it pads pictures to a square.
    """
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

    Returns:
        `{"mode", "crop_fraction"}`, or an empty dict of an encoder that says nothing.
    """
    for layer in getattr(encoder, "layers", ()):
        if isinstance(layer, PictureScaling):
            return {"mode": layer.resize, "crop_fraction": layer.crop_fraction}
        if shown := resizing_of_tower(layer):  # of a backbone
            return shown
    return {}


def _points(inputs, features, name):
    return keras.Model(inputs, {"mean": UnitLength(name="unit_length")(features)}, name=name)
