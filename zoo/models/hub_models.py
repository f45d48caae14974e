"""CLIP, SigLIP, SigLIP 2 and MetaCLIP 2 of KerasHub as models of points, and files from hubs."""

import difflib
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from halo_search.cli.public import public_models
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.files.json_files import read_object
from zoo import losses, similarities
from zoo.encoders.clip import DEVIATION, MEAN
from zoo.encoders.point_towers import hub_caption_encoder, hub_image_encoder, hub_scaling
from zoo.encoders.subwords import HubTokenizer
from zoo.layers.compat import fetched_file
from zoo.layers.image_preprocessing import PictureScaling
from zoo.models.dual_encoder import DualEncoder
from zoo.models.hugging_face import (
    CONFIG_FILE,
    MODEL_TYPES,
    model_type_of,
    read_hugging_face,
    read_preprocessor,
)

HUBS = ("hf://", "kaggle://")
WEIGHTS = ("model.safetensors", "open_clip_model.safetensors")
HUB_FILE = "model.weights.h5"  # KerasHub's
# What may lie beside the weights of `transformers` or of a published checkpoint.
_BESIDE = (
    "preprocessor_config.json",
    *("spiece.model", "sentencepiece.model", "tokenizer.model"),
    *("vocab.json", "merges.txt", "bpe_simple_vocab_16e6.txt.gz", "vocab.txt"),
)
# By the backbone's class in `keras_hub.models`: its preprocessor, and the layer of its logits.
_FAMILIES = {
    "CLIPBackbone": ("CLIPPreprocessor", "clip_head"),
    "SigLIPBackbone": ("SigLIPPreprocessor", "siglip_head"),  # SigLIP 2 too
    "MetaCLIP2Backbone": ("MetaCLIP2CausalLMPreprocessor", "metaclip_2_head"),
}
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


def hub_model(
    preset: str | os.PathLike | keras.Model, preprocessor: keras.layers.Layer | None = None
) -> DualEncoder:
    """A KerasHub dual encoder as a model of points, with its preprocessing and tokenizer inside.
    Raises InputError if there is no such preset, or its backbone is of another family."""
    hub = require("keras_hub", extra="models")
    if isinstance(preset, keras.Model):
        backbone = preset
        family = _family(backbone, type(backbone).__name__)
    elif (folder := pathlib.Path(preset).expanduser()).is_dir() and (
        model_type_of(folder) in MODEL_TYPES
    ):
        backbone, own = read_hugging_face(folder)
        family, preprocessor = _family(backbone, preset), preprocessor or own
    else:
        backbone = _read(hub.models.Backbone, preset, dtype="float32")
        family = _family(backbone, preset)
        has_one = any((folder / name).is_file() for name in _HAVE_TOKENIZERS)
        if preprocessor is None and folder.is_dir() and not (has_one or model_type_of(folder)):
            preprocessor = _standard(backbone, folder)
        preprocessor = preprocessor or _read(getattr(hub.models, family[0]), preset)
    head = getattr(backbone, family[1])
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
    if layout and (found := read_preprocessor(folder, layout, length, size)) is not None:
        return found
    said = f"{folder}: was saved without a tokenizer"
    name = _STANDARD.get((kind, text.vocabulary_size))
    if name is None:
        raise InputError(
            f"{said}, and its {text.vocabulary_size:,} words are of no standard one; save its "
            "preprocessor beside it"
        )
    try:
        cls = getattr(require("keras_hub", extra="models").models, _FAMILIES[kind][0])
        found = _read(cls, name)
    except InputError as error:
        raise InputError(f"{said}. Put {beside} there, or: {error}") from error
    warnings.warn(f"{said}; it opens with the standard one, of {name}", stacklevel=4)
    return found


def _read(cls, preset, **options: Any):
    path = os.path.expanduser(os.fspath(preset))
    tell_download(str(preset))
    try:
        return cls.from_preset(path, **options)
    except Exception as error:  # KerasHub and the hubs have many kinds
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        handle = hub_names().get(str(preset), str(preset))
        if handle.startswith(HUBS):
            raise InputError(unfetched(str(preset), handle, error)) from error
        raise InputError(f"{preset}: KerasHub cannot read it: {reason}") from error


def tell_download(name: str) -> None:
    """Says on stderr, before a model of a hub is fetched, how large it is, under which licence and
    where it is kept; nothing of one that is here already, or of no hub."""
    facts = hub_facts().get(name, {})
    handle = name if name.startswith(HUBS) else str(facts.get("kaggle_handle", ""))
    scheme, _, path = handle.partition("://")
    told = None
    if scheme == "hf":
        told = _on_hugging_face(path)
    elif scheme == "kaggle":
        folder = require("kagglehub.config", extra="models").get_cache_folder()
        where = pathlib.Path(folder) / "models" / path
        known = {row["name"]: row["licence"] for row in public_models()}
        size = 4 * facts.get("metadata", {}).get("params", 0)  # in single precision
        told = None if where.exists() else (where, size, known.get(name))
    if told is not None and name not in _TOLD:
        _TOLD.add(name)
        where, size, licence = told
        size = f"{size / 1e9:.1f} GB" if size else "of a size that is not known"
        licence = licence or "not known: look at its page"
        print(
            f"{name}: fetching {size} from {handle} to {where}; licence: {licence}", file=sys.stderr
        )


_TOLD: set[str] = set()


def _on_hugging_face(path):
    """`(where it is kept, bytes, licence)` of a model; None of one that is here, or unreachable."""
    hub, repo = require("huggingface_hub", extra="models"), "/".join(path.split("/")[:2])
    if any(isinstance(hub.try_to_load_from_cache(repo, one), str) for one in (*WEIGHTS, HUB_FILE)):
        return None
    try:
        facts = hub.model_info(repo, files_metadata=True, timeout=10)
    except Exception:  # what fetches it says why
        return None
    sizes = {one.rfilename: one.size or 0 for one in facts.siblings or ()}
    of_weights = sum(size for one, size in sizes.items() if one in WEIGHTS or one == HUB_FILE)
    licence = facts.card_data.get("license") if facts.card_data else None
    where = pathlib.Path(hub.constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"
    return where, of_weights, licence


def hub_names() -> dict[str, str]:
    """The names of KerasHub's dual encoders: `{name: handle}`; empty without keras-hub."""
    return {name: str(facts.get("kaggle_handle", "")) for name, facts in hub_facts().items()}


def hub_facts() -> dict[str, dict[str, Any]]:
    """What KerasHub knows of its dual encoders, by their names; empty without keras-hub."""
    try:
        models = require("keras_hub", extra="models").models
    except MissingPackageError:
        return {}
    families = (getattr(models, family).presets for family in _FAMILIES)
    return {name: facts for family in families for name, facts in family.items()}


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
        beside = [str(one) for one in path.parent.iterdir() if one != path]
    found = difflib.get_close_matches(name, [*others, *hub_names(), *beside], 1)
    if not found and re.fullmatch(r"[\w-]+/[\w.-]+", name):  # as Hugging Face names its models
        found = [f"hf://{name}"]
    return f"; did you mean {found[0]!r}?" if found else ""


def _family(backbone, preset):
    name = type(backbone).__name__
    if name not in _FAMILIES:
        raise InputError(
            f"{preset}: the backbone must be one of {', '.join(_FAMILIES)}; received {name}"
        )
    return _FAMILIES[name]


def _scaling(backbone, preprocessor):
    converter = getattr(preprocessor, "image_converter", None)
    if converter is not None:
        return hub_scaling(converter)
    if type(backbone).__name__ == "SigLIPBackbone":
        return PictureScaling(1 / 127.5, -1.0, resize="stretch", name="preprocessing")
    scale = [1 / (255 * one) for one in DEVIATION]
    offset = [-mean / one for mean, one in zip(MEAN, DEVIATION, strict=True)]
    return PictureScaling(scale, offset, name="preprocessing")


def fetch(handle: str, names: Sequence[str], may_lack: bool = False) -> list[pathlib.Path]:
    """Fetches files of one folder on a hub; those that are cached are not fetched again."""
    paths = []
    for name in names:
        try:
            paths.append(pathlib.Path(fetched_file(handle, name)))
        except Exception as error:  # each hub has its own
            if not (may_lack and isinstance(error, FileNotFoundError)) or _no_network(error):
                raise InputError(unfetched(handle, handle, error)) from error
    return paths


def fetch_config(handle: str) -> dict:
    """The `config.json` of a folder on a hub. Raises InputError as `fetch`."""
    return read_object(fetch(handle, [CONFIG_FILE])[0])


def fetch_weights(handle: str) -> pathlib.Path:
    """The local folder of a hub's model that others wrote: `config.json`, safetensors, tokenizer
    files. Raises InputError as `fetch`, or if the folder has no safetensors."""
    (config,) = fetch(handle, [CONFIG_FILE])
    tell_download(handle)
    if not any(fetch(handle, [name], may_lack=True) for name in WEIGHTS):
        raise InputError(f"{handle}: expected a file {' or '.join(WEIGHTS)}; it has neither")
    fetch(handle, _BESIDE, may_lack=True)
    return config.parent


def unfetched(name: str, handle: str, error: Exception) -> str:
    """The sentence of a model that could not be fetched, and what to do without a network."""
    if isinstance(error, MissingPackageError):
        return str(error)
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if _no_network(error):
        reason = "the hub cannot be reached"
    where = "" if name == handle else f" from {handle}"
    return (
        f"{name}: cannot be fetched{where}: {reason}. Without a network, fetch that folder on "
        "another machine and give its path"
    )


def _no_network(error):
    """Whether a connection is behind an error: the hubs' clients say a file is not there."""
    while error is not None:
        name = type(error).__name__
        if name == "gaierror" or "Connect" in name or "Timeout" in name:
            return True
        error = error.__cause__ or error.__context__
    return False
