"""CLIP, SigLIP, SigLIP 2 and MetaCLIP 2 of KerasHub as models of points."""

import difflib
import os
import pathlib
import re
import warnings
from typing import Any

import keras
import numpy as np

from halo_search.cli.hub_handles import check_handle
from halo_search.errors import InputError, require
from halo_search.files.json_files import read_object
from zoo import losses, similarities
from zoo.encoders.clip import DEVIATION, MEAN
from zoo.encoders.point_towers import hub_caption_encoder, hub_image_encoder, hub_scaling
from zoo.encoders.subwords import HubTokenizer
from zoo.layers.image_preprocessing import PictureScaling
from zoo.models.dual_encoder import DualEncoder
from zoo.models.hubs import FAMILIES, HUBS, hub_names, tell_download, unfetched
from zoo.models.hugging_face import (
    CONFIG_FILE,
    MODEL_TYPES,
    model_type_of,
    read_hugging_face,
    read_preprocessor,
)

_HAVE_TOKENIZERS = ("tokenizer.json", "preprocessor.json")  # folders of KerasHub
_BESIDE_OF = {
    "CLIPBackbone": ("clip", "bpe_simple_vocab_16e6.txt.gz"),
    "SigLIPBackbone": ("siglip", "spiece.model, of SigLIP 2 tokenizer.model,"),
}
# KerasHub's presets with the tokenizers that all of their size have.
_STANDARD = {
    ("CLIPBackbone", 49408): "clip_vit_base_patch32",
    ("SigLIPBackbone", 32000): "siglip_base_patch16_224",
    ("SigLIPBackbone", 256000): "siglip2_base_patch16_224",
    ("MetaCLIP2Backbone", 901629): "metaclip_2_vit_huge_patch14_224",
}


def hub_model(preset: str | os.PathLike) -> DualEncoder:
    """A KerasHub dual encoder as a model of points, of its name or of a folder, with its
    preprocessing and tokenizer inside. Raises InputError if there is no such preset, or its
    backbone is of another family."""
    folder = pathlib.Path(preset).expanduser()
    if folder.is_dir() and model_type_of(folder) in MODEL_TYPES:
        return backbone_model(*read_hugging_face(folder), name=preset)
    models = require("keras_hub", extra="models").models
    backbone = _read(models.Backbone, preset, dtype="float32")
    preprocessor, _ = _family(backbone, preset)
    has_tokenizer = any((folder / name).is_file() for name in _HAVE_TOKENIZERS)
    if folder.is_dir() and not (has_tokenizer or model_type_of(folder)):
        return backbone_model(backbone, _standard(backbone, folder))
    return backbone_model(backbone, _read(getattr(models, preprocessor), preset))


def backbone_model(
    backbone: keras.Model,
    preprocessor: keras.layers.Layer | None,
    name: str | os.PathLike | None = None,
) -> DualEncoder:
    """A backbone of KerasHub as a model of points that shares its layers; without a preprocessor
    it is shown its family's usual pixels, and has no tokenizer. `name` is what errors call it.
    Raises InputError if the backbone is of another family."""
    _, head = _family(backbone, type(backbone).__name__ if name is None else name)
    head = getattr(backbone, head)
    scale = float(np.exp(float(head.logit_scale)))
    if hasattr(head, "logit_bias"):
        similarity = similarities.CosineLogit(scale, float(head.logit_bias))
        loss = losses.MatchingCrossentropy(reduction="sum")
    else:
        limit = max(100.0, scale * (1 + 1e-6))  # CLIP's clip, where training ended at it
        similarity = similarities.Cosine(scale, learn_scale=True, max_scale=limit)
        loss = losses.InfoNCE()
    length = backbone.text_encoder.max_sequence_length
    tokenizer = None if preprocessor is None else HubTokenizer.of(preprocessor, length)
    length = length if tokenizer is None else tokenizer.max_words
    return DualEncoder(
        hub_image_encoder(backbone, _scaling(backbone, preprocessor)),
        hub_caption_encoder(backbone, length),
        similarity=similarity,
        loss=loss,
        tokenizer=tokenizer,
        name="keras_hub",
    )


def _standard(backbone, folder):
    """A preprocessor of a backbone that was saved alone: of files beside it, else the standard one
    of its family, as KerasHub has it or fetches it."""
    kind, text = type(backbone).__name__, backbone.text_encoder
    size = backbone.vision_encoder.image_shape[:2]
    layout, beside = _BESIDE_OF.get(kind, (None, "its preprocessor"))
    length = text.max_sequence_length
    if layout and (preprocessor := read_preprocessor(folder, layout, length, size)) is not None:
        return preprocessor
    refusal = f"{folder}: was saved without a tokenizer"
    name = _STANDARD.get((kind, text.vocabulary_size))
    if name is None:
        raise InputError(
            f"{refusal}, and its {text.vocabulary_size:,} words are of no standard one; save its "
            "preprocessor beside it"
        )
    try:
        cls = getattr(require("keras_hub", extra="models").models, FAMILIES[kind][0])
        preprocessor = _read(cls, name)
    except InputError as error:
        raise InputError(f"{refusal}. Put {beside} there, or: {error}") from error
    warnings.warn(
        f"{refusal}; it opens with the standard one, of {name}", stacklevel=6
    )  # where the user opens it
    return preprocessor


def _read(cls, preset, **options: Any):
    """A KerasHub object of a preset. Raises InputError with the reason if it cannot be fetched or
    read."""
    path = os.path.expanduser(os.fspath(preset))
    if str(preset).startswith(HUBS) or str(preset) in hub_names():
        check_handle(str(preset))
    tell_download(str(preset))
    try:
        return cls.from_preset(path, **options)
    except Exception as error:  # KerasHub and the hubs have many kinds
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        handle = hub_names().get(str(preset), str(preset))
        if handle.startswith(HUBS):
            raise InputError(unfetched(str(preset), handle, error)) from error
        raise InputError(f"{preset}: KerasHub cannot read it: {reason}") from error


def is_hub_folder(folder: pathlib.Path) -> bool:
    """Whether a folder holds a preset of KerasHub, or a model of `transformers`."""
    if not (folder / CONFIG_FILE).is_file():
        return False
    config = read_object(folder / CONFIG_FILE)
    return "model_type" in config or is_hub_config(config)


def is_hub_config(config: dict[str, Any]) -> bool:
    """Whether a `config.json` is of a preset of KerasHub."""
    return str(config.get("module", "")).startswith("keras_hub")


def nearest(name: str, others: list[str]) -> str:
    """`"; did you mean …?"` with the name nearest to one that is not there, or nothing."""
    path = pathlib.Path(name).expanduser()
    beside = []
    if path.parent.is_dir():
        beside = [str(sibling) for sibling in path.parent.iterdir() if sibling != path]
    close = difflib.get_close_matches(name, [*others, *hub_names(), *beside], 1)
    if not close and re.fullmatch(r"[\w-]+/[\w.-]+", name):  # as Hugging Face names its models
        close = [f"hf://{name}"]
    return f"; did you mean {close[0]!r}?" if close else ""


def _family(backbone, preset):
    """The family of a KerasHub backbone. Raises InputError if it is no dual encoder known here."""
    name = type(backbone).__name__
    if name not in FAMILIES:
        raise InputError(
            f"{preset}: the backbone must be one of {', '.join(FAMILIES)}; received {name}"
        )
    return FAMILIES[name]


def _scaling(backbone, preprocessor):
    """The scaling of pixels: the preprocessor's if it states one, else SigLIP's or CLIP's."""
    converter = getattr(preprocessor, "image_converter", None)
    if converter is not None:
        return hub_scaling(converter)
    if type(backbone).__name__ == "SigLIPBackbone":
        return PictureScaling(1 / 127.5, -1.0, resize="stretch", name="preprocessing")
    scale = [1 / (255 * deviation) for deviation in DEVIATION]
    offset = [-mean / deviation for mean, deviation in zip(MEAN, DEVIATION, strict=True)]
    return PictureScaling(scale, offset, name="preprocessing")
