"""CLIP weights of OpenAI's and Hugging Face's naming, from a local file into KerasHub's towers."""

import os
import pathlib

import numpy as np

from zoo.encoders.weight_arrays import WeightArrays
from zoo.errors import InputError, require

_HUGGING_FACE, _OPENAI = "Hugging Face", "OpenAI"


def load_clip_weights(encoder, path, tower):
    """Copies pretrained CLIP weights into a tower.

    Reads, by what is there:

    - `.safetensors` or `.npz` with Hugging Face's names (`vision_model.encoder.layers.0…`), as
      `openai/clip-vit-base-patch32` has them;
    - the same with OpenAI's (`visual.transformer.resblocks.0…`, `transformer.resblocks.0…`), as
      the state dicts of `openai/CLIP` and `open_clip` have them;
    - a folder with a KerasHub preset of a `CLIPBackbone`.

    Positions of another image size are interpolated bicubically; text positions are cut.

    Args:
        encoder: a `keras_hub` `CLIPVisionEncoder` or `CLIPTextEncoder`, built.
        path: the file or folder.
        tower: `"vision"` or `"text"`.

    Raises:
        InputError: if there is no such file, it is of another kind, an array is missing, has
            another shape than the network's, or is not finite, or blocks would be left over.
    """
    path = pathlib.Path(os.fspath(path)).expanduser()
    if path.is_dir():
        _copy_preset(encoder, path, tower)
        return
    arrays = WeightArrays(path, "CLIP weights")
    names = _names(arrays, tower)
    blocks = len(encoder.encoder_layers)
    if arrays.has(names["block"].format(blocks)):
        raise InputError(f"{path}: expected {blocks} {tower} blocks; it has more")
    _copy_embeddings(encoder, arrays, names, tower)
    for number, block in enumerate(encoder.encoder_layers):
        _copy_block(block, arrays, names, number)
    _copy_norm(encoder.layer_norm, arrays, names["last_norm"])


def _names(arrays, tower):
    """What the arrays of a tower are called in this file."""
    if arrays.has(f"{tower}_model."):
        prefix = f"{tower}_model."
        return {
            "family": _HUGGING_FACE,
            "block": prefix + "encoder.layers.{}.",
            "norms": ("layer_norm1", "layer_norm2"),
            "mlp": ("mlp.fc1", "mlp.fc2"),
            "class": prefix + "embeddings.class_embedding",
            "patches": prefix + "embeddings.patch_embedding.weight",
            "words": prefix + "embeddings.token_embedding.weight",
            "positions": prefix + "embeddings.position_embedding.weight",
            "first_norm": prefix + "pre_layrnorm",  # the misspelling is Hugging Face's
            "last_norm": prefix + ("post_layernorm" if tower == "vision" else "final_layer_norm"),
        }
    prefix = "visual." if tower == "vision" else ""
    if arrays.has(prefix + "transformer.resblocks."):
        vision = tower == "vision"
        return {
            "family": _OPENAI,
            "block": prefix + "transformer.resblocks.{}.",
            "norms": ("ln_1", "ln_2"),
            "mlp": ("mlp.c_fc", "mlp.c_proj"),
            "class": "visual.class_embedding",
            "patches": "visual.conv1.weight",
            "words": "token_embedding.weight",
            "positions": prefix + "positional_embedding",
            "first_norm": "visual.ln_pre",
            "last_norm": "visual.ln_post" if vision else "ln_final",
        }
    raise InputError(f"{arrays.path}: no {tower} tower of CLIP in it, by no naming that is known")


def _copy_embeddings(encoder, arrays, names, tower):
    positions = arrays.get(names["positions"])
    if tower == "text":
        embedding = encoder.embedding
        arrays.assign(
            embedding.token_embedding.embeddings, names["words"], arrays.get(names["words"])
        )
        variable = embedding.position_embedding.position_embeddings
        arrays.assign(variable, names["positions"], positions[: variable.shape[0]])
        return
    embedding = encoder.embedding
    patches = arrays.get(names["patches"]).transpose(2, 3, 1, 0)  # out, in, h, w → h, w, in, out
    arrays.assign(embedding.patch_embedding.kernel, names["patches"], patches)
    arrays.assign(embedding.class_embedding, names["class"], arrays.get(names["class"]).ravel())
    variable = embedding.position_embedding.embeddings
    positions = _resized(positions, variable.shape[0])
    arrays.assign(variable, names["positions"], positions)
    # KerasHub keeps the indices 0, 1, … as a weight that starts at zero.
    embedding.position_ids.assign(np.arange(variable.shape[0])[None])
    _copy_norm(encoder.pre_layer_norm, arrays, names["first_norm"])


def _copy_block(block, arrays, names, number):
    prefix = names["block"].format(number)
    for norm, name in zip((block.layer_norm_1, block.layer_norm_2), names["norms"], strict=True):
        _copy_norm(norm, arrays, prefix + name)
    for dense, name in zip((block.dense_1, block.dense_2), names["mlp"], strict=True):
        arrays.assign(dense.kernel, prefix + name, arrays.get(f"{prefix}{name}.weight").T)
        arrays.assign(dense.bias, prefix + name, arrays.get(f"{prefix}{name}.bias"))
    attention = block.attention
    parts = (attention.query_dense, attention.key_dense, attention.value_dense)
    for part, (name, weight, bias) in zip(parts, _projections(arrays, names, prefix), strict=True):
        # (out, in) → (in, heads, per head)
        arrays.assign(part.kernel, name, weight.T.reshape(part.kernel.shape))
        arrays.assign(part.bias, name, bias.reshape(part.bias.shape))
    out = "self_attn.out_proj" if names["family"] == _HUGGING_FACE else "attn.out_proj"
    weight = arrays.get(f"{prefix}{out}.weight")
    kernel = attention.output_dense.kernel
    arrays.assign(kernel, prefix + out, weight.T.reshape(kernel.shape))
    arrays.assign(attention.output_dense.bias, prefix + out, arrays.get(f"{prefix}{out}.bias"))


def _projections(arrays, names, prefix):
    """Name, weight and bias of query, key and value, which OpenAI stacks."""
    if names["family"] == _HUGGING_FACE:
        for letter in "qkv":
            name = f"{prefix}self_attn.{letter}_proj"
            yield name, arrays.get(f"{name}.weight"), arrays.get(f"{name}.bias")
        return
    weights = np.split(arrays.get(f"{prefix}attn.in_proj_weight"), 3)
    biases = np.split(arrays.get(f"{prefix}attn.in_proj_bias"), 3)
    for weight, bias in zip(weights, biases, strict=True):
        yield f"{prefix}attn.in_proj_weight", weight, bias


def _copy_norm(norm, arrays, name):
    arrays.assign(norm.gamma, name, arrays.get(f"{name}.weight"))
    arrays.assign(norm.beta, name, arrays.get(f"{name}.bias"))


def _resized(positions, count):
    """Positions of another grid: the class token's, then a bicubic image of the others."""
    if len(positions) == count:
        return positions
    from keras import ops

    old, new = round((len(positions) - 1) ** 0.5), round((count - 1) ** 0.5)
    grid = positions[1:].reshape(1, old, old, -1)
    grid = ops.image.resize(grid, (new, new), interpolation="bicubic", antialias=True)
    grid = ops.convert_to_numpy(grid).reshape(new * new, -1)
    return np.concatenate([positions[:1], grid])


def _copy_preset(encoder, path, tower):
    keras_hub = require("keras_hub", extra="text")

    try:
        backbone = keras_hub.models.CLIPBackbone.from_preset(str(path))
        weights = getattr(backbone, f"{tower}_encoder").get_weights()
        encoder.set_weights(weights)
    except Exception as error:  # KerasHub raises several kinds, depending on what is missing
        raise InputError(f"{path}: not a KerasHub preset of this CLIP: {error}") from error
