"""A model whose embedding of a picture is its mean colour."""

import random

import keras
import numpy as np

import zoo
from zoo.data.text.captions import word_tokenizer

RIDGE = 0.2  # of `pixel_model`, which otherwise would find all


def colour_model(texts, seed=0):
    """A `DualEncoder` that knows the words of some texts, random."""
    random.seed(seed)
    image, mean = _mean_colour()
    return with_words(keras.Model(image, {"mean": mean}), texts, max_words=8)


def colour_gaussians(texts, kernel="glorot_uniform"):
    """One of Gaussians; `kernel` initialises what makes a log variance of a mean."""
    image, mean = _mean_colour()
    caption, words, tokenizer = _mean_word(texts, 4, 3)

    def gaussian(mean):
        log_variance = keras.layers.Dense(3, kernel_initializer=kernel)(mean)
        return {"mean": mean, "log_variance": log_variance}

    return zoo.models.DualEncoder(
        keras.Model(image, gaussian(mean)),
        keras.Model(caption, gaussian(words)),
        zoo.similarities.ClosedFormSampledDistance(),
        tokenizer=tokenizer,
    )


def with_words(images, texts, max_words):
    """A `DualEncoder` of points: pictures by a network, captions by the mean of words' vectors."""
    caption, words, tokenizer = _mean_word(texts, max_words, images.output["mean"].shape[-1])
    return zoo.models.DualEncoder(
        images,
        keras.Model(caption, {"mean": words}),
        zoo.similarities.Cosine(),
        tokenizer=tokenizer,
    )


def pixel_model(photos, captions):
    """A `DualEncoder` whose words are taught by the pixels of photos: it finds some of these.

    `photos` are paths, `captions` a dict from their names to texts.
    """
    image = keras.Input((8, 8, 3))
    pixels = keras.layers.Flatten()(keras.layers.Rescaling(1 / 127.5, -1)(image))
    texts = [text for photo in photos for text in captions[photo.name]]
    owners = [n for n, photo in enumerate(photos) for _ in captions[photo.name]]
    random.seed(0)
    model = with_words(keras.Model(image, {"mean": pixels}), texts, max_words=16)
    seen = np.asarray(model.tower("images").of_files(photos)["mean"])[owners]
    ids = np.asarray(model.tokenize(texts))
    counts = np.zeros((len(ids), model.tokenizer.vocabulary_size()))
    np.add.at(counts, (np.arange(len(ids))[:, None], ids), 1 / ids.shape[1])
    (words,) = (
        layer for layer in model.caption_encoder.layers if isinstance(layer, keras.layers.Embedding)
    )
    ridge = counts.T @ counts + RIDGE * np.eye(counts.shape[1])
    words.set_weights([np.linalg.solve(ridge, counts.T @ seen)])
    return model


def _mean_colour():
    image = keras.Input((8, 8, 3))
    return image, keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))


def _mean_word(texts, max_words, dim):
    caption = keras.Input((max_words,), dtype="int32")
    tokenizer = word_tokenizer(list(texts), max_words=max_words)
    words = keras.layers.Embedding(tokenizer.vocabulary_size(), dim)(caption)
    return caption, keras.layers.GlobalAveragePooling1D()(words), tokenizer
