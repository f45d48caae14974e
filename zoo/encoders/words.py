"""Captions to the features of their words: by a recurrent network, by BERT, by what is given."""

import os
import pathlib
from typing import Any

import keras
from keras import ops

from halo_search.errors import InputError, require
from zoo.embeddings import Tensor
from zoo.layers.sentence_gru import SentenceGRU

PADDING = 0
BASE = {"num_layers": 12, "num_heads": 12, "hidden_dim": 768}
NOTHING = (
    "one of `caption_backbone`, `tokenizer` and `vocabulary_size` must be given; received none"
)


def gru(
    vocabulary_size: int,
    dim: int,
    word_dim: int = 300,
    bidirectional: bool = True,
    merge: str = "concat",
    word_vectors: Tensor | None = None,
    max_length: int | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    at_last_word: bool = False,
) -> keras.Model:
    """Word embeddings and a GRU over them.

    Args:
        vocabulary_size: number of token ids, of which 0 is padding.
        dim: dimension of the states and of the sentence (D).
        word_dim: dimension of the word embeddings.
        bidirectional, merge, at_last_word: as in `SentenceGRU`.
        word_vectors: initial word embeddings `(vocabulary_size, word_dim)` (else a ValueError),
            such as GloVe's, or None for random ones. They are trained;
            `model.get_layer("words").trainable = False` freezes them.
        max_length: length of all captions where it is known, or None.
        dropout, seed: share of the word embeddings' numbers that a training step zeroes.

    Returns:
        A Functional `keras.Model` named `"backbone"` from ids `(batch, length)` int32 to a dict:
        `"words"` the embeddings `(batch, length, word_dim)`, `"states"` the GRU's outputs
        `(batch, length, dim)`, `"sentence"` `(batch, dim)`, `"mask"` bool `(batch, length)`, True
        where there is a word.
    """
    if word_vectors is not None and tuple(word_vectors.shape) != (vocabulary_size, word_dim):
        raise ValueError(
            f"`word_vectors` must have shape ({vocabulary_size}, {word_dim}) "
            f"(vocabulary_size, word_dim); received {tuple(word_vectors.shape)}"
        )
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    embed = keras.layers.Embedding(
        vocabulary_size,
        word_dim,
        embeddings_initializer=keras.initializers.RandomUniform(-0.1, 0.1),  # that of VSE++
        weights=word_vectors,
        name="words",
    )
    words, mask = embed(ids), ops.not_equal(ids, PADDING)
    if dropout:
        words = keras.layers.Dropout(dropout, seed=seed, name="dropout")(words)
    reader = SentenceGRU(dim, bidirectional, merge, at_last_word, name="gru")
    states, sentence = reader(words, mask=mask)
    outputs = {"words": words, "states": states, "sentence": sentence, "mask": mask}
    return keras.Model(ids, outputs, name="backbone")


def caption_features(backbone, tokenizer, vocabulary_size, dim, max_length, **options):
    """A builder's network over captions: the one that is given, or a GRU over words. Raises
    ValueError if there is nothing to make a network of."""
    if backbone is not None:
        return backbone
    if tokenizer is not None:
        vocabulary_size, max_length = tokenizer.vocabulary_size(), tokenizer.max_words
    elif vocabulary_size is None:
        raise ValueError(NOTHING)
    return gru(vocabulary_size, dim, max_length=max_length, **options)


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
        vocabulary_size: number of token ids, of which 0 is padding. It holds for random weights
            alone, as do `dropout` and `size`.
        max_length: length of a caption in ids.
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
    keras_hub = require("keras_hub", extra="models")

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
    keras_hub = require("keras_hub", extra="models")

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
