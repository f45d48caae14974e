"""A model whose embedding of a picture is its mean colour."""

import random

import keras

import zoo
from zoo.data.text.captions import word_tokenizer


def colour_model(texts, seed=0):
    """A `DualEncoder` that knows the words of some texts, random."""
    random.seed(seed)
    image = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))
    return with_words(keras.Model(image, {"mean": mean}), texts, max_words=8)


def with_words(images, texts, max_words):
    """A `DualEncoder` of points: pictures by a network, captions by the mean of words' vectors."""
    caption = keras.Input((max_words,), dtype="int32")
    tokenizer = word_tokenizer(list(texts), max_words=max_words)
    dim = images.output["mean"].shape[-1]
    words = keras.layers.Embedding(tokenizer.vocabulary_size(), dim)(caption)
    words = keras.layers.GlobalAveragePooling1D()(words)
    return zoo.models.DualEncoder(
        images,
        keras.Model(caption, {"mean": words}),
        zoo.similarities.Cosine(),
        tokenizer=tokenizer,
    )
