"""A model whose embedding of a picture is its mean colour."""

import keras

import zoo
from zoo.data.text.captions import word_tokenizer


def colour_model(texts, seed=0):
    """A `DualEncoder` that knows the words of some texts, random."""
    keras.utils.set_random_seed(seed)
    image = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))
    caption = keras.Input((8,), dtype="int32")
    tokenizer = word_tokenizer(list(texts), max_words=8)
    words = keras.layers.Embedding(tokenizer.vocabulary_size(), 3)(caption)
    words = keras.layers.GlobalAveragePooling1D()(words)
    return zoo.models.DualEncoder(
        keras.Model(image, {"mean": mean}),
        keras.Model(caption, {"mean": words}),
        zoo.similarities.Cosine(),
        tokenizer=tokenizer,
    )
