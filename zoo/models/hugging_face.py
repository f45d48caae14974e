"""CLIP and SigLIP as `transformers` saves them, read into KerasHub's backbones."""

import pathlib
from typing import Any, NamedTuple

import keras
import numpy as np

from zoo.encoders.clip import DEVIATION, MEAN
from zoo.encoders.weight_arrays import WeightArrays
from zoo.errors import InputError, require
from zoo.files.json_files import read_object

WEIGHTS_FILE, CONFIG_FILE = "model.safetensors", "config.json"
MODEL_TYPES = ("clip", "siglip", "siglip2")
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


class Place(NamedTuple):
    """Where arrays go: a variable of Keras, their names, and their arrangement in its layout."""

    variable: Any
    names: tuple[str, ...]
    arrange: Any = np.asarray


def model_type_of(folder: pathlib.Path) -> str | None:
    """The `model_type` of a folder of `transformers`, or None."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    return read_object(path).get("model_type")


def read_hugging_face(folder: pathlib.Path) -> tuple[keras.Model, keras.layers.Layer | None]:
    """KerasHub's backbone and preprocessor of a folder with CLIP or SigLIP; None without a
    tokenizer. Raises InputError if the config is of another network, or arrays do not fit it."""
    models = require("keras_hub", extra="text").models
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
        places = clip_places(backbone)
    else:
        width = text.get("projection_size", text["hidden_size"])
        backbone = models.SigLIPBackbone(
            models.SigLIPVisionEncoder(**of_image, dtype="float32"),
            models.SigLIPTextEncoder(**of_text, projection_dim=width, dtype="float32"),
            dtype="float32",
        )
        places = siglip_places(backbone)
    network = f"a {config.get('model_type')} of {folder / CONFIG_FILE}"
    arrays = WeightArrays(folder / WEIGHTS_FILE, network)
    arrays.require([name for place in places for name in place.names], network)
    arrays.check_all_used(network, places)
    for place in places:
        (name,) = place.names
        arrays.assign(place.variable, name, place.arrange(arrays.get(name)))
    return backbone, _preprocessor(folder, kind, text, image[:2])


def clip_places(backbone: keras.Model) -> list[Place]:
    """Where the arrays of `CLIPModel` go."""
    vision, text = backbone.vision_encoder, backbone.text_encoder
    places = [
        _kernel(vision.embedding.patch_embedding, "vision_model.embeddings.patch_embedding"),
        Place(vision.embedding.class_embedding, ("vision_model.embeddings.class_embedding",)),
        *_norm(vision.pre_layer_norm, "vision_model.pre_layrnorm"),
        *_norm(vision.layer_norm, "vision_model.post_layernorm"),
        *_norm(text.layer_norm, "text_model.final_layer_norm"),
        _kernel(backbone.vision_projection, "visual_projection"),
        _kernel(backbone.text_projection, "text_projection"),
        Place(backbone.clip_head.logit_scale, ("logit_scale",), lambda x: x.reshape(())),
        _table(text.embedding.token_embedding, "text_model.embeddings.token_embedding"),
        Place(
            text.embedding.position_embedding.position_embeddings,
            ("text_model.embeddings.position_embedding.weight",),
        ),
        _table(vision.embedding.position_embedding, "vision_model.embeddings.position_embedding"),
    ]
    for tower, layers in (("vision", vision.encoder_layers), ("text", text.encoder_layers)):
        for number, layer in enumerate(layers):
            name = f"{tower}_model.encoder.layers.{number}"
            places += _norm(layer.layer_norm_1, f"{name}.layer_norm1")
            places += _norm(layer.layer_norm_2, f"{name}.layer_norm2")
            places += _attention(layer.attention, f"{name}.self_attn")
            places += _dense(layer.dense_1, f"{name}.mlp.fc1")
            places += _dense(layer.dense_2, f"{name}.mlp.fc2")
    return places


def siglip_places(backbone: keras.Model) -> list[Place]:
    """Where the arrays of `SiglipModel` go."""
    vision, text = backbone.vision_encoder, backbone.text_encoder
    head, pooled = backbone.siglip_head, "vision_model.head"
    places = [
        *_dense(vision.embedding.patch_embedding, "vision_model.embeddings.patch_embedding"),
        _table(vision.embedding.position_embedding, "vision_model.embeddings.position_embedding"),
        *_norm(vision.post_layer_norm, "vision_model.post_layernorm"),
        Place(vision.head.probe, (f"{pooled}.probe",)),
        *_joint_attention(vision.head.attention, f"{pooled}.attention"),
        *_norm(vision.head.layer_norm, f"{pooled}.layernorm"),
        *_dense(vision.head.mlp.fc1, f"{pooled}.mlp.fc1"),
        *_dense(vision.head.mlp.fc2, f"{pooled}.mlp.fc2"),
        _table(text.embedding.token_embedding, "text_model.embeddings.token_embedding"),
        _table(text.embedding.position_embedding, "text_model.embeddings.position_embedding"),
        *_norm(text.post_layer_norm, "text_model.final_layer_norm"),
        *_dense(text.head, "text_model.head"),
        Place(head.logit_scale, ("logit_scale",), lambda x: x.reshape(())),
        Place(head.logit_bias, ("logit_bias",), lambda x: x.reshape(())),
    ]
    for tower, layers in (("vision", vision.encoder_layers), ("text", text.encoder_layers)):
        for number, layer in enumerate(layers):
            name = f"{tower}_model.encoder.layers.{number}"
            places += _norm(layer.layer_norm1, f"{name}.layer_norm1")
            places += _norm(layer.layer_norm2, f"{name}.layer_norm2")
            places += _attention(layer.self_attn, f"{name}.self_attn")
            places += _dense(layer.mlp.fc1, f"{name}.mlp.fc1")
            places += _dense(layer.mlp.fc2, f"{name}.mlp.fc2")
    return places


def _sizes(config, usual, folder):
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


def _preprocessor(folder, kind, text, image_size):
    """The pixels and the tokens as the folder describes them, or None without a tokenizer."""
    hub = require("keras_hub", extra="text")
    path = folder / "preprocessor_config.json"
    shown = read_object(path) if path.is_file() else {}
    usual = (MEAN, DEVIATION) if kind == "clip" else ([0.5] * 3, [0.5] * 3)
    mean, deviation = shown.get("image_mean", usual[0]), shown.get("image_std", usual[1])
    factor = shown.get("rescale_factor", 1 / 255)
    pixels = {
        "scale": [factor / one for one in deviation],
        "offset": [-middle / one for middle, one in zip(mean, deviation, strict=True)],
        "crop_to_aspect_ratio": kind == "clip",
    }
    length = text["max_position_embeddings"]
    if kind == "clip":
        words, merges = folder / "vocab.json", folder / "merges.txt"
        if not (words.is_file() and merges.is_file()):
            return None
        tokenizer = hub.models.CLIPTokenizer(
            read_object(words), _merges(merges), pad_with_end_token=True
        )
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
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line.strip() and not line.startswith("#version")]


def _norm(layer, name):
    return [Place(layer.gamma, (f"{name}.weight",)), Place(layer.beta, (f"{name}.bias",))]


def _kernel(layer, name):
    axes = (2, 3, 1, 0) if len(layer.kernel.shape) == 4 else (1, 0)
    return Place(layer.kernel, (f"{name}.weight",), lambda x: x.transpose(axes))


def _dense(layer, name):
    return [_kernel(layer, name), Place(layer.bias, (f"{name}.bias",))]


def _table(layer, name):
    return Place(layer.embeddings, (f"{name}.weight",))


def _attention(layer, name):
    parts = zip("qkv", (layer.query_dense, layer.key_dense, layer.value_dense), strict=True)
    return [
        place
        for letter, dense in parts
        for place in (
            Place(dense.kernel, (f"{name}.{letter}_proj.weight",), _by_heads(dense.kernel)),
            Place(dense.bias, (f"{name}.{letter}_proj.bias",), _by_heads(dense.bias)),
        )
    ] + _output(layer, name)


def _joint_attention(layer, name):
    """Of `torch.nn.MultiheadAttention`, whose three maps are one array."""
    places = _output(layer, name)
    for third, dense in enumerate((layer.query_dense, layer.key_dense, layer.value_dense)):
        for variable, suffix in ((dense.kernel, "weight"), (dense.bias, "bias")):
            places.append(Place(variable, (f"{name}.in_proj_{suffix}",), _third(variable, third)))
    return places


def _output(layer, name):
    dense = layer.output_dense
    return [
        Place(dense.kernel, (f"{name}.out_proj.weight",), _by_heads(dense.kernel)),
        Place(dense.bias, (f"{name}.out_proj.bias",)),
    ]


def _by_heads(variable):
    shape = tuple(variable.shape)
    return lambda x: x.T.reshape(shape) if len(shape) == 3 else x.reshape(shape)


def _third(variable, number):
    arrange = _by_heads(variable)
    return lambda x: arrange(np.split(x, 3)[number])
