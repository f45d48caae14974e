"""CLIP and SigLIP as `transformers` saves them, read into KerasHub's backbones."""

import pathlib
from collections.abc import Iterator

import keras
import numpy as np

from halo_search.errors import InputError, require
from halo_search.files.json_files import read_object
from zoo.encoders import weight_layouts as layouts
from zoo.encoders.clip import DEVIATION, MEAN
from zoo.encoders.subwords import read_byte_pairs
from zoo.encoders.weight_arrays import WeightArrays
from zoo.encoders.weight_layouts import Entry, fill

WEIGHTS_FILE, CONFIG_FILE = "model.safetensors", "config.json"
BYTE_PAIRS = "bpe_simple_vocab_16e6.txt.gz"  # of openai/CLIP and OpenCLIP
MODEL_TYPES = ("clip", "siglip", "siglip2")
_IMAGES, _WORDS = "vision_model.embeddings", "text_model.embeddings"
# What `transformers` leaves out of a config, because it is its default.
_CLIP_TEXT = {"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048}
_CLIP_TEXT |= {"num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77}
_CLIP_VISION = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
_CLIP_VISION |= {"num_attention_heads": 12, "image_size": 224, "patch_size": 32}
_SIGLIP_TEXT = {**_CLIP_TEXT, "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072}
_SIGLIP_TEXT |= {"num_attention_heads": 12, "max_position_embeddings": 64}
_SIGLIP_VISION = {**_CLIP_VISION, "patch_size": 16}
_DEFAULTS = {"clip": (_CLIP_TEXT, _CLIP_VISION), "siglip": (_SIGLIP_TEXT, _SIGLIP_VISION)}
_ACTIVATIONS = {"quick_gelu": "quick_gelu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_approximate"}


def model_type_of(folder: pathlib.Path) -> str | None:
    """The `model_type` of a folder of `transformers`, or None."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    return read_object(path).get("model_type")


def read_hugging_face(folder: pathlib.Path) -> tuple[keras.Model, keras.layers.Layer | None]:
    """KerasHub's backbone and preprocessor of a folder with CLIP or SigLIP; None without a
    tokenizer. Raises InputError if the config is of another network, or arrays do not fit it."""
    models = require("keras_hub", extra="models").models
    config = read_object(folder / CONFIG_FILE)
    kind = "clip" if config.get("model_type") == "clip" else "siglip"
    text, vision = (
        {**defaults, **(config.get(f"{name}_config") or {})}
        for name, defaults in zip(("text", "vision"), _DEFAULTS[kind], strict=True)
    )
    usual = "quick_gelu" if kind == "clip" else "gelu_pytorch_tanh"
    image = (vision["image_size"], vision["image_size"], 3)
    of_text = {
        "vocabulary_size": text["vocab_size"],
        "embedding_dim": text["hidden_size"],
        "max_sequence_length": text["max_position_embeddings"],
        **_sizes(text, usual, folder),
    }
    of_image = {"patch_size": vision["patch_size"], "image_shape": image}
    of_image |= _sizes(vision, usual, folder)
    if kind == "clip":
        backbone = models.CLIPBackbone(
            models.CLIPVisionEncoder(**of_image, dtype="float32"),
            models.CLIPTextEncoder(**of_text, dtype="float32"),
            projection_dim=config.get("projection_dim", 512),
            dtype="float32",
        )
        ids = backbone.vision_encoder.embedding.position_ids  # KerasHub's presets hold them
        ids.assign(np.arange(ids.shape[-1])[None])
        entries = _clip_entries(backbone)
    else:
        width = text.get("projection_size", text["hidden_size"])
        backbone = models.SigLIPBackbone(
            models.SigLIPVisionEncoder(**of_image, dtype="float32"),
            models.SigLIPTextEncoder(**of_text, projection_dim=width, dtype="float32"),
            dtype="float32",
        )
        entries = _siglip_entries(backbone)
    network = f"a {config.get('model_type')} of {folder / CONFIG_FILE}"
    arrays = WeightArrays(folder / WEIGHTS_FILE, network)
    fill(arrays, entries, network)
    return backbone, read_preprocessor(folder, kind, text["max_position_embeddings"], image[:2])


def _clip_entries(backbone) -> Iterator[Entry]:
    """Layout of `CLIPModel`."""
    vision, text = backbone.vision_encoder, backbone.text_encoder
    yield from layouts.convolution(vision.embedding.patch_embedding, f"{_IMAGES}.patch_embedding")
    yield Entry(vision.embedding.class_embedding, (f"{_IMAGES}.class_embedding",))
    yield _table(vision.embedding.position_embedding, f"{_IMAGES}.position_embedding")
    yield from layouts.norm(vision.pre_layer_norm, "vision_model.pre_layrnorm")
    yield from layouts.norm(vision.layer_norm, "vision_model.post_layernorm")
    yield _table(text.embedding.token_embedding, f"{_WORDS}.token_embedding")
    positions = text.embedding.position_embedding.position_embeddings
    yield Entry(positions, (f"{_WORDS}.position_embedding.weight",))
    yield from layouts.norm(text.layer_norm, "text_model.final_layer_norm")
    yield from layouts.linear(backbone.vision_projection, "visual_projection")
    yield from layouts.linear(backbone.text_projection, "text_projection")
    yield _scalar(backbone.clip_head.logit_scale, "logit_scale")
    for name, layer in _blocks(vision, text):
        yield from layouts.hugging_face_block(layer, name)


def _siglip_entries(backbone) -> Iterator[Entry]:
    """Layout of `SiglipModel`."""
    vision, text = backbone.vision_encoder, backbone.text_encoder
    pooled, name = vision.head, "vision_model.head"
    yield from layouts.convolution(vision.embedding.patch_embedding, f"{_IMAGES}.patch_embedding")
    yield _table(vision.embedding.position_embedding, f"{_IMAGES}.position_embedding")
    yield from layouts.norm(vision.post_layer_norm, "vision_model.post_layernorm")
    yield Entry(pooled.probe, (f"{name}.probe",))
    yield from layouts.joint_attention(pooled.attention, f"{name}.attention")
    yield from layouts.norm(pooled.layer_norm, f"{name}.layernorm")
    yield from _mlp(pooled.mlp, f"{name}.mlp")
    yield _table(text.embedding.token_embedding, f"{_WORDS}.token_embedding")
    yield _table(text.embedding.position_embedding, f"{_WORDS}.position_embedding")
    yield from layouts.norm(text.post_layer_norm, "text_model.final_layer_norm")
    yield from layouts.linear(text.head, "text_model.head")
    yield _scalar(backbone.siglip_head.logit_scale, "logit_scale")
    yield _scalar(backbone.siglip_head.logit_bias, "logit_bias")
    for name, layer in _blocks(vision, text):
        yield from layouts.norm(layer.layer_norm1, f"{name}.layer_norm1")
        yield from layouts.norm(layer.layer_norm2, f"{name}.layer_norm2")
        yield from layouts.self_attention(layer.self_attn, f"{name}.self_attn")
        yield from _mlp(layer.mlp, f"{name}.mlp")


def _blocks(vision, text):
    """Yields `(name, layer)` of the transformer layers of both towers."""
    for tower, layers in (("vision", vision.encoder_layers), ("text", text.encoder_layers)):
        for number, layer in enumerate(layers):
            yield f"{tower}_model.encoder.layers.{number}", layer


def _mlp(layer, name):
    yield from layouts.linear(layer.fc1, f"{name}.fc1")
    yield from layouts.linear(layer.fc2, f"{name}.fc2")


def _table(layer, name):
    return Entry(layer.embeddings, (f"{name}.weight",))


def _scalar(variable, name):
    return Entry(variable, (name,), lambda x: x.reshape(()))


def _sizes(config, usual, folder):
    """A tower's sizes from its part of `config.json`. Raises InputError for an unknown
    activation."""
    act = config.get("hidden_act", usual)
    if act not in _ACTIVATIONS:
        raise InputError(
            f"{folder / CONFIG_FILE}: expected `hidden_act` in {', '.join(_ACTIVATIONS)}; "
            f"received {act!r}"
        )
    return {
        "hidden_dim": config["hidden_size"],
        "num_layers": config["num_hidden_layers"],
        "num_heads": config["num_attention_heads"],
        "intermediate_dim": config["intermediate_size"],
        "intermediate_activation": _ACTIVATIONS[act],
    }


def read_preprocessor(
    folder: pathlib.Path, kind: str, length: int, image_size: tuple[int, int]
) -> keras.layers.Layer | None:
    """The pixels and the tokens of a `"clip"` or `"siglip"` as the folder describes them, or None
    without a tokenizer."""
    hub = require("keras_hub", extra="models")
    path = folder / "preprocessor_config.json"
    shown = read_object(path) if path.is_file() else {}
    usual = (MEAN, DEVIATION) if kind == "clip" else ([0.5] * 3, [0.5] * 3)
    mean, deviation = shown.get("image_mean", usual[0]), shown.get("image_std", usual[1])
    factor = shown.get("rescale_factor", 1 / 255)
    pixels = {
        "scale": [factor / value for value in deviation],
        "offset": [-middle / value for middle, value in zip(mean, deviation, strict=True)],
        "crop_to_aspect_ratio": kind == "clip",
    }
    if kind == "clip":
        words, merges = folder / "vocab.json", folder / "merges.txt"
        if words.is_file() and merges.is_file():
            vocabulary = read_object(words), _merges(merges)
        elif (folder / BYTE_PAIRS).is_file():
            vocabulary = read_byte_pairs(folder / BYTE_PAIRS)
        else:
            return None
        tokenizer = hub.models.CLIPTokenizer(*vocabulary, pad_with_end_token=True)
        converter = hub.layers.CLIPImageConverter(image_size, **pixels)
        return hub.models.CLIPPreprocessor(tokenizer, converter, sequence_length=length)
    converter = hub.layers.SigLIPImageConverter(image_size, **pixels)
    for name, tokenizer in (
        ("spiece.model", hub.models.SigLIPTokenizer),
        ("tokenizer.model", hub.models.GemmaTokenizer),
    ):
        if (folder / name).is_file():
            return hub.models.SigLIPPreprocessor(
                tokenizer((folder / name).read_bytes()),
                converter,
                length,
                canonicalize_text=name == "spiece.model",
            )
    return None


def _merges(path):
    """The merges of byte pairs in a file, most frequent first."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line.strip() and not line.startswith("#version")]
