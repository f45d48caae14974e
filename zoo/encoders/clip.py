"""CLIP's two towers with all their tokens, last blocks for the variance, and their weights."""

import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from halo_search.errors import InputError, require
from zoo.encoders import weight_layouts
from zoo.encoders.weight_arrays import WeightArrays
from zoo.encoders.weight_layouts import Entry, fill

# Pixels 0 … 255 of CLIP's own training data, not of ImageNet.
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)

_IMAGE = {
    "vit_b_32": {"patch_size": 32, "hidden_dim": 768, "num_layers": 12, "num_heads": 12},
    "vit_b_16": {"patch_size": 16, "hidden_dim": 768, "num_layers": 12, "num_heads": 12},
    "vit_l_14": {"patch_size": 14, "hidden_dim": 1024, "num_layers": 24, "num_heads": 16},
    "vit_s_16": {"patch_size": 16, "hidden_dim": 384, "num_layers": 12, "num_heads": 6},
    "tiny": {"patch_size": 16, "hidden_dim": 64, "num_layers": 3, "num_heads": 4},
}
_TEXT = {
    "vit_b_32": {"hidden_dim": 512, "num_layers": 12, "num_heads": 8},
    "vit_b_16": {"hidden_dim": 512, "num_layers": 12, "num_heads": 8},
    "vit_l_14": {"hidden_dim": 768, "num_layers": 12, "num_heads": 12},
    "vit_s_16": {"hidden_dim": 512, "num_layers": 12, "num_heads": 8},
    "tiny": {"hidden_dim": 64, "num_layers": 3, "num_heads": 4},
}
CLIP = tuple(_IMAGE)
_BLOCK = "_encoder_block_"  # in KerasHub's names of blocks


def clip_image(
    name: str = "vit_b_32",
    weights: str | os.PathLike | None = None,
    image_size: int = 224,
    variance_blocks: int = 1,
) -> keras.Model:
    """CLIP's vision transformer: images to all tokens.

    | name | blocks × width | tokens at 224 | parameters, with the second last block |
    |---|---|---|---|
    | `"vit_b_32"` | 12 × 768 | 50 | 95 M |
    | `"vit_b_16"` | 12 × 768 | 197 | 93 M |
    | `"vit_l_14"` | 24 × 1024 | 257 | 316 M |
    | `"vit_s_16"` | 12 × 384 | 197 | 23 M, PCME++'s on RedCaps, from scratch: CLIP has none |
    | `"tiny"` | 3 × 64 | 197 | 0.3 M, for tests |

    Args:
        name: one of the above.
        weights: a local file of OpenAI's or Hugging Face's CLIP, see
            `zoo.encoders.clip`; None for random ones.
        image_size: height and width. Other sizes than the weights' interpolate the positions.
        variance_blocks: how many of the last blocks log σ² has of its own, with random weights,
            beside those of the mean, which keep the pretrained ones: the branches part before
            them. 1 as in the paper, 2 for its table 5, 0 for points.

    Returns:
        A Functional `keras.Model` named `"backbone"` from RGB images `(batch, size, size, 3)`,
        0…255, to `{"features", "variance_features"}`, each `(batch, tokens, width)`, the class
        token first; without variance blocks to `{"features"}`. Features have not gone through
        CLIP's final norm. CLIP's own preprocessing is inside.

    Raises:
        ValueError: on an unknown name, or more variance blocks than fit before the last block.
        InputError: if the weights are not there or not of this network.
    Reference: Radford et al., ICML 2021; PCME++ (Chun, ICLR 2024), section 2.5 and appendix B.
    Released code differs: PCME++ normalises by ImageNet's statistics.
    """
    # Here, since it takes a second and 150 MB that few models need.
    keras_hub = require("keras_hub", extra="models")

    config = _config(name, _IMAGE)
    encoder = keras_hub.models.CLIPVisionEncoder(
        **config,
        intermediate_dim=4 * config["hidden_dim"],
        image_shape=(image_size, image_size, 3),
        name="vision",
    )
    images = keras.Input((image_size, image_size, 3), name="images")
    normalize = keras.layers.Normalization(
        mean=[255 * m for m in MEAN],
        variance=[(255 * s) ** 2 for s in DEVIATION],
        dtype="float32",
        name="preprocessing",
    )
    pixels = normalize(images)
    outputs = _two_branches(encoder, pixels, variance_blocks, encoder.encoder_layers[-1])
    backbone = keras.Model(images, outputs, name="backbone")
    if weights is not None:
        load_clip_weights(encoder, weights, "vision")
    return backbone


def clip_text(
    name: str = "vit_b_32",
    weights: str | os.PathLike | None = None,
    vocabulary_size: int = 49408,
    max_length: int = 77,
    variance_blocks: int = 1,
) -> keras.Model:
    """CLIP's text transformer: token ids to all tokens.

    Args:
        name, weights, variance_blocks: as for `clip_image`, of the partner of that name.
        vocabulary_size: number of token ids; the last one ends every caption.
        max_length: length of a caption in ids.

    Returns:
        A Functional `keras.Model` named `"backbone"` from ids `(batch, max_length)` int32 to
        `{"features", "variance_features", "mask"}`; features have gone through CLIP's final norm,
        variance features have not. The mask is True up to the end token, the largest id of a row,
        whatever pads it after that.

    Raises and Reference: as for `clip_image`.
    """
    keras_hub = require("keras_hub", extra="models")

    config = _config(name, _TEXT)
    encoder = keras_hub.models.CLIPTextEncoder(
        vocabulary_size=vocabulary_size,
        embedding_dim=config["hidden_dim"],
        **config,
        intermediate_dim=4 * config["hidden_dim"],
        max_sequence_length=max_length,
        name="text",
    )
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    last = ops.expand_dims(ops.argmax(ids, axis=-1), -1)
    mask = ops.less_equal(ops.expand_dims(ops.arange(max_length), 0), last)
    outputs = _two_branches(encoder, ids, variance_blocks, encoder.layer_norm)
    backbone = keras.Model(ids, {**outputs, "mask": mask}, name="backbone")
    if weights is not None:
        load_clip_weights(encoder, weights, "text")
    return backbone


def clip_blocks(backbone: keras.Model) -> list[list[keras.layers.Layer]]:
    """The transformer blocks of a CLIP backbone from the input to the output. Returns a list of
    lists of layers."""
    layers = list(backbone.layers)
    layers += [part for layer in layers for part in getattr(layer, "layers", ())]
    numbered = {
        int(layer.name.rpartition("_")[2]): layer for layer in layers if _BLOCK in layer.name
    }
    blocks = [[numbered[number]] for number in sorted(numbered)]
    copies = [layer for layer in backbone.layers if "variance_block" in layer.name]
    for block, copy in zip(blocks[len(blocks) - len(copies) :], copies, strict=True):
        block.append(copy)
    return blocks


def _config(name, configs):
    if name not in configs:
        raise ValueError(f"`name` must be one of {CLIP}; received {name!r}")
    return configs[name]


def _two_branches(encoder, inputs, variance_blocks, last):
    """The tokens after the layer `last` of a tower, and those of the variance's own blocks."""
    blocks = encoder.encoder_layers
    if not 0 <= variance_blocks < len(blocks):
        raise ValueError(
            f"`variance_blocks` must be from 0 to {len(blocks) - 1}; received {variance_blocks}"
        )
    outputs = {"features": last.output}
    if variance_blocks:
        outputs["shared"] = blocks[-1 - int(variance_blocks)].output
    tower = keras.Model(*encoder.inputs, outputs, name=encoder.name)
    outputs = tower(inputs)
    if not variance_blocks:
        return outputs
    features = outputs.pop("shared")
    # The towers' names tell the copies apart, since optimizers go by the paths of variables.
    for number, block in enumerate(blocks[-int(variance_blocks) :]):
        suffix = f"_{number}" if number else ""
        config = {**block.get_config(), "name": f"{encoder.name}_variance_block{suffix}"}
        features = type(block).from_config(config)(features)
    return {**outputs, "variance_features": features}


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
    """The entries of a CLIP tower; position embeddings are resized to this picture size, or cut to
    this length of text."""
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
