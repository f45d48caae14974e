"""CLIP weights of OpenAI's and Hugging Face's naming, from a local file into KerasHub's towers.

Reads `.safetensors` and `.npz` files with either's names. Positions of another image size are
interpolated; text positions are cut.
"""

import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from zoo.encoders import weight_layouts
from zoo.encoders.weight_arrays import WeightArrays
from zoo.encoders.weight_layouts import Entry, fill
from zoo.errors import InputError


def load_clip_weights(encoder, path, tower):
    """Copies CLIP's weights into a built tower of KerasHub, `"vision"` or `"text"`. Raises
    InputError if the file is none of those above, or not of this network."""
    path = pathlib.Path(os.fspath(path)).expanduser()
    arrays = WeightArrays(path, "CLIP weights")
    names = _names(arrays, tower)
    blocks = len(encoder.encoder_layers)
    if arrays.has(names.block.format(blocks)):
        raise InputError(f"{path}: expected {blocks} {tower} blocks; it has more")
    # The other tower lies in the same file.
    fill(arrays, _entries(encoder, names, tower), f"CLIP's {tower} tower", complete=False)
    if tower == "vision":
        # KerasHub keeps the indices 0, 1, … as a weight that starts at zero.
        embedding = encoder.embedding
        embedding.position_ids.assign(np.arange(embedding.num_positions)[None])


class _Names(NamedTuple):
    """What the arrays of a tower are called; `layout` is that of a block."""

    layout: Callable
    block: str
    patches: str
    first_norm: str
    class_token: str
    words: str
    positions: str
    last_norm: str


def _names(arrays, tower):
    """What the arrays of a tower are called in this file."""
    vision = tower == "vision"
    if arrays.has(f"{tower}_model."):
        prefix = f"{tower}_model."
        return _Names(
            weight_layouts.hugging_face_block,
            prefix + "encoder.layers.{}.",
            prefix + "embeddings.patch_embedding",
            prefix + "pre_layrnorm",  # the misspelling is Hugging Face's
            prefix + "embeddings.class_embedding",
            prefix + "embeddings.token_embedding.weight",
            prefix + "embeddings.position_embedding.weight",
            prefix + ("post_layernorm" if vision else "final_layer_norm"),
        )
    prefix = "visual." if vision else ""
    if arrays.has(prefix + "transformer.resblocks."):
        return _Names(
            weight_layouts.transformer_block,
            prefix + "transformer.resblocks.{}.",
            "visual.conv1",
            "visual.ln_pre",
            "visual.class_embedding",
            "token_embedding.weight",
            prefix + "positional_embedding",
            "visual.ln_post" if vision else "ln_final",
        )
    raise InputError(f"{arrays.path}: no {tower} tower of CLIP in it, by no naming that is known")


def _entries(encoder, names, tower):
    embedding = encoder.embedding
    if tower == "vision":
        variable = embedding.position_embedding.embeddings
        yield Entry(variable, (names.positions,), lambda p: _resized(p, variable.shape[0]))
        yield Entry(embedding.class_embedding, (names.class_token,), np.ravel)
        yield from weight_layouts.convolution(embedding.patch_embedding, names.patches)
        yield from weight_layouts.norm(encoder.pre_layer_norm, names.first_norm)
    else:
        variable = embedding.position_embedding.position_embeddings
        yield Entry(variable, (names.positions,), lambda p: p[: variable.shape[0]])
        yield Entry(embedding.token_embedding.embeddings, (names.words,))
    for number, block in enumerate(encoder.encoder_layers):
        yield from names.layout(block, names.block.format(number).rstrip("."))
    yield from weight_layouts.norm(encoder.layer_norm, names.last_norm)


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
