"""The smallest dual encoders, and a batch for them."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from zoo import losses, similarities
from zoo.models.dual_encoder import DualEncoder

LABELS = np.array([0, 1, 2, 3])


def encoders(kind):
    """The smallest towers that give each kind of embedding."""

    def heads(features):
        if kind == "set":
            return {"elements": layers.Reshape((2, 4))(layers.Dense(8)(features))}
        embedding = {"mean": layers.Dense(4)(features)}
        if kind == "gaussian":
            embedding["log_variance"] = layers.Dense(4)(features)
        return embedding

    image = keras.Input((6, 6, 3))
    caption = keras.Input((5,), dtype="int32")
    pixels = layers.GlobalAveragePooling2D()(layers.Rescaling(1 / 255)(image))
    words = layers.GlobalAveragePooling1D()(layers.Embedding(20, 8)(caption))
    return keras.Model(image, heads(pixels)), keras.Model(caption, heads(words))


SIMILARITIES = {
    "point": lambda: similarities.Cosine(),
    "gaussian": lambda: similarities.ClosedFormSampledDistance(),
    "set": lambda: similarities.SmoothChamfer(),
}


def build(kind="gaussian", **kwargs):
    kwargs.setdefault("loss", losses.MatchingCrossentropy())
    return DualEncoder(*encoders(kind), SIMILARITIES[kind](), **kwargs)


def batch(captions_per_image=1):
    rng = np.random.default_rng(0)
    return {
        "images": rng.uniform(0, 255, (4, 6, 6, 3)).astype("float32"),
        "captions": rng.integers(1, 20, (4 * captions_per_image, 5)).astype("int32"),
        "image_labels": LABELS,
        "caption_labels": np.repeat(LABELS, captions_per_image),
    }


def endless(data):
    """`fit` slices dicts of arrays of unequal length, so batches go in through tf.data."""
    return tf.data.Dataset.from_tensors(data).repeat()


class PixelMean(layers.Layer):
    def call(self, images):
        return {"mean": keras.ops.mean(images, axis=(1, 2))}


class WordMean(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.words = layers.Embedding(20, 3)
        self.words.build(None)
        self.built = True

    def call(self, ids):
        return {"mean": keras.ops.mean(self.words(ids), axis=1)}
