"""A model whose embedding of a picture is its pixels."""

import keras

from zoo.data.text.captions import WordTokenizer
from zoo.models import DualEncoder
from zoo.similarities import Cosine

SIZE = 8


def pixel_model():
    """A `DualEncoder` of `SIZE` by `SIZE` pictures."""
    image = keras.Input((SIZE, SIZE, 3))
    caption = keras.Input((4,), dtype="int32")
    return DualEncoder(
        keras.Model(image, {"mean": keras.layers.Flatten()(image)}),
        keras.Model(caption, {"mean": keras.layers.Embedding(9, SIZE * SIZE * 3)(caption)[:, 0]}),
        Cosine(),
        tokenizer=WordTokenizer(["photo"], max_words=4),
    )
