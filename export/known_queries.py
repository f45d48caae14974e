"""Whether a model understands a query at all, as TensorFlow functions of embedding and words."""

import keras
import tensorflow as tf

from zoo.confidence.known import ERROR, MOSTLY, NEAREST, SeenTexts
from zoo.confidence.words import FUNCTION_WORDS
from zoo.data.text.captions import WordTokenizer, normalise


class KnownQueriesFunction(tf.Module):
    """`zoo.confidence.KnownQueries` of one side, with the tables that it needs.

    It decides as `KnownQueries.declined`, in float64 within.

    Args:
        known: the `KnownQueries` of the queries that the encoder embeds.
        tokenizer: of captions, which knows words; None for images and for vectors.
    """

    def __init__(self, known, tokenizer=None):
        super().__init__(name="known_queries")
        self._kept = tf.constant(known.kept, tf.float32)
        seen = isinstance(known.shape, SeenTexts)
        self._distance = _FromTexts(known.shape) if seen else _FromGaussian(known.shape)
        self._named = keras.layers.StringLookup(vocabulary=sorted(FUNCTION_WORDS))
        self._words = None
        if isinstance(tokenizer, WordTokenizer):
            words = tokenizer.get_vocabulary(include_special_tokens=False)
            self._words = keras.layers.StringLookup(vocabulary=[str(word) for word in words])

    def __call__(self, embedding, texts=None):
        """What an encoder's signature adds.

        Args:
            embedding: of the queries, as the encoder gives it.
            texts: the captions `(Q,)`; None for images.

        Returns:
            `known_p_value`, float32 `(Q,)`, small for vectors far from all that was learned, and
            `unknown`, bool: the query is not understood.
        """
        p_value = self._p_value(self._distance(_coordinates(embedding)))
        strange = p_value <= ERROR
        if texts is not None:
            strange = self._of_words(tf.strings.split(normalise(texts)), strange)
        return {"known_p_value": tf.cast(p_value, tf.float32), "unknown": strange}

    def _of_words(self, words, strange):
        naming = tf.ragged.boolean_mask(words, words.with_values(self._named(words.values) == 0))
        count = tf.cast(naming.row_lengths(), tf.float64)
        if self._words is not None:
            lost = naming.with_values(tf.cast(self._words(naming.values) == 0, tf.float64))
            lost = tf.reduce_sum(lost, axis=1)
            strange = (lost > MOSTLY * count) | (strange & (lost > 0))
        return strange | (count == 0)

    def _p_value(self, values):
        # In the precision in which the held-out values are kept: equal ones must stay equal.
        place = tf.searchsorted(self._kept, tf.cast(values, tf.float32), side="left")
        count = self._kept.shape[0]
        return tf.cast(1 + count - place, tf.float64) / (count + 1)


class _FromGaussian(tf.Module):
    """`ShrunkGaussian.distance`, of tensors."""

    def __init__(self, shape):
        super().__init__()
        self._mean = tf.constant(shape.mean, tf.float64)
        self._axes = tf.constant(shape.axes, tf.float64)
        self._variances = tf.constant(shape.variances, tf.float64)
        self._rest = shape.rest

    def __call__(self, points):
        centred = points - self._mean
        along = tf.linalg.matmul(centred, self._axes, transpose_b=True)
        left = tf.reduce_sum(centred**2, axis=1) - tf.reduce_sum(along**2, axis=1)
        left = tf.maximum(left, 0.0)
        squared = tf.reduce_sum(along**2 / self._variances, axis=1) + left / self._rest
        return tf.sqrt(squared / self._mean.shape[0])


class _FromTexts(tf.Module):
    """`SeenTexts.distance`, of tensors."""

    def __init__(self, shape):
        super().__init__()
        self._seen = tf.constant(shape.seen)  # a half of float32's bytes in the file
        self._tilt = tf.constant(shape.tilt[:, None])

    def __call__(self, points):
        points = tf.cast(points[:, : self._tilt.shape[0]], tf.float32)
        points /= tf.maximum(tf.norm(points, axis=1, keepdims=True), 1e-12)
        cosines = tf.linalg.matmul(points, tf.cast(self._seen, tf.float32), transpose_b=True)
        nearest = tf.reduce_mean(tf.math.top_k(cosines, NEAREST, sorted=False).values, axis=1)
        return 1 - nearest - tf.linalg.matmul(points, self._tilt)[:, 0]


def _coordinates(embedding):
    """`zoo.embeddings.arrays.coordinates`, of tensors."""
    parts = {name: tf.cast(values, tf.float64) for name, values in embedding.items()}
    if "log_variance" in parts:
        mean, spread = parts["mean"], parts["log_variance"]
        return tf.concat([mean, tf.broadcast_to(spread, tf.shape(mean))], axis=1)
    if "mean" in parts:
        return parts["mean"]
    values = parts["elements" if "elements" in parts else "tokens"]
    if "mask" not in parts:
        return tf.reduce_mean(values, axis=1)
    weights = parts["mask"]
    return tf.einsum("bl,bld->bd", weights, values) / tf.reduce_sum(weights, 1, keepdims=True)
