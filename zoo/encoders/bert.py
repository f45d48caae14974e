"""BERT as a caption encoder: token ids to all hidden states."""

import os
import pathlib
from typing import Any

import keras
from keras import ops

from zoo.errors import InputError, require

PADDING = 0
BASE = {"num_layers": 12, "num_heads": 12, "hidden_dim": 768}


def bert(
    preset: str | os.PathLike | None = None,
    vocabulary_size: int = 30522,
    max_length: int = 64,
    dropout: float = 0.1,
    exact_gelu: bool = False,
    **size: Any,
) -> keras.Model:
    """BERT's hidden states, for `zoo.data.BertTokenizer`'s ids.

    Args:
        preset: a local folder with a KerasHub preset of a `BertBackbone`, or with a Hugging Face
            checkpoint (`config.json`, `model.safetensors`); None for random weights.
        vocabulary_size: number of token ids, of which 0 is padding. Of random weights only, as
            are `dropout` and `size`.
        max_length: length of a caption in ids.
        dropout: of all blocks.
        exact_gelu: whether blocks have GELU itself, as Hugging Face's weights were trained with,
            not KerasHub's approximation of it by tanh.
        **size: `num_layers`, `num_heads`, `hidden_dim` and `intermediate_dim`, where it is not
            BERT base.

    Returns:
        A Functional `keras.Model` named `"backbone"` from ids `(batch, max_length)` int32 to a
        dict: `"features"` the last hidden states `(batch, max_length, hidden_dim)`, `"mask"` bool
        `(batch, max_length)`, True where there is a token.

    Raises:
        InputError: if the folder is no such preset, or reads less than `max_length` tokens.

    Reference: Devlin et al., "BERT", NAACL 2019.
    """
    # Here, since it takes a second and 150 MB that few models need.
    keras_hub = require("keras_hub", extra="text")

    if preset is not None:
        network = network_of_folder(preset, max_length)
    else:
        size = {**BASE, **size}
        size.setdefault("intermediate_dim", 4 * size["hidden_dim"])
        network = keras_hub.models.BertBackbone(
            vocabulary_size,
            dropout=dropout,
            max_sequence_length=max(max_length, 512),
            name="bert",
            **size,
        )
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    mask = ops.not_equal(ids, PADDING)
    if exact_gelu:
        activate_exactly(network.transformer_layers)
        # A model of the layers, since a loaded `BertBackbone` has forgotten how it is activated.
        network = keras.Model(network.input, network.output, name="bert")
    states = network(
        {
            "token_ids": ids,
            "segment_ids": ops.zeros_like(ids),
            "padding_mask": ops.cast(mask, "int32"),
        }
    )["sequence_output"]
    return keras.Model(ids, {"features": states, "mask": mask}, name="backbone")


def activate_exactly(blocks):
    """Gives blocks of KerasHub GELU itself, in place of its approximation by tanh."""
    for block in blocks:
        block.activation = keras.activations.gelu
        block._feedforward_intermediate_dense.activation = keras.activations.gelu


def network_of_folder(preset, max_length, **settings):
    """KerasHub's `BertBackbone` of a folder, see `bert`; `settings` replace the folder's."""
    keras_hub = require("keras_hub", extra="text")

    path = pathlib.Path(os.fspath(preset)).expanduser()
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; expected a preset of BERT")
    try:
        network = keras_hub.models.BertBackbone.from_preset(str(path), **settings)
    except Exception as error:  # KerasHub raises several kinds, depending on what is missing
        raise InputError(f"{path}: not a preset of BERT: {error}") from error
    longest = network.max_sequence_length
    if max_length > longest:
        raise InputError(f"{path}: this BERT reads {longest} tokens; received {max_length}")
    return network
