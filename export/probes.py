"""Requests of known content: to warm a server up, and to compare an export with its model."""

import numpy as np
import tensorflow as tf

_WORDS = ("a", "small", "bird", "with", "red", "wings", "and", "white", "breast", "green", "tree")


def pictures(count, size=64, seed=0):
    """JPEG files of soft coloured blobs, as a list of bytes."""
    rng = np.random.default_rng([seed, 0])
    coarse = rng.uniform(0, 255, (count, 4, 4, 3)).astype(np.float32)
    smooth = tf.cast(tf.clip_by_value(tf.image.resize(coarse, (size, size)), 0, 255), tf.uint8)
    return [tf.io.encode_jpeg(picture, quality=95).numpy() for picture in smooth]


def sentences(count, tokenizer=None, seed=0):
    """Captions of 3 to 12 words, of the tokenizer's own words where it can list them."""
    words = _WORDS
    if hasattr(tokenizer, "get_vocabulary"):
        known = [str(word) for word in tokenizer.get_vocabulary()]
        words = [word for word in known if word.isalpha()] or _WORDS
    rng = np.random.default_rng([seed, 1])
    return [" ".join(rng.choice(words, rng.integers(3, 13))) for _ in range(count)]


def numbers(count, shape, seed=0):
    """Pixels, features or scores `(count, …)`, float32."""
    rng, shape = np.random.default_rng([seed, 2]), tuple(shape)
    return rng.uniform(0, 255 if shape[-1:] == (3,) else 1, (count, *shape)).astype(np.float32)
