"""The two backbones of a builder: a network over pictures, and one over captions."""

import os
from typing import Any

import keras

from zoo import encoders

NOTHING = (
    "one of `caption_backbone`, `tokenizer` and `vocabulary_size` must be given; received none"
)


def pictures(
    backbone: str | keras.Model, size: int = 224, weights: str | os.PathLike | None = None
) -> keras.Model:
    """A network over pictures: a `keras.Model` as it is, else by its name in
    `zoo.encoders.convolutional`, of that size and these weights."""
    if isinstance(backbone, keras.Model):
        return backbone
    return encoders.convolutional(backbone, size, weights)


def captions(
    backbone: keras.Model | None,
    tokenizer: keras.layers.Layer | None,
    vocabulary_size: int | None,
    dim: int,
    max_length: int,
    **options: Any,
) -> keras.Model:
    """A network over captions: the one that is given, or a GRU over words. Raises ValueError if
    there is nothing to make a network of."""
    if backbone is not None:
        return backbone
    if tokenizer is not None:
        vocabulary_size, max_length = tokenizer.vocabulary_size(), tokenizer.max_words
    elif vocabulary_size is None:
        raise ValueError(NOTHING)
    return encoders.gru(vocabulary_size, dim, max_length=max_length, **options)
