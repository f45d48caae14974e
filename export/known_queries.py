"""Whether a model knows a query at all, as TensorFlow functions of embedding and words."""

import keras
import tensorflow as tf

from zoo.confidence.unknown import ERROR
from zoo.data.captions import WordTokenizer, normalise


class KnownQueriesFunction(tf.Module):
    """`zoo.confidence.KnownQueries` of one side, with the tables that it needs.

    The numbers are those of `KnownQueries.least_p_value`, in float64 within.

    Args:
        known: the `KnownQueries` of the queries that the encoder embeds.
        tokenizer: of captions, which counts words; None for images and for vectors.
    """

    def __init__(self, known, tokenizer=None):
        super().__init__(name="known_queries")
        self._names = known.names
        self._lengths = known.lengths
        self._kept = {name: tf.constant(values, tf.float32) for name, values in known.kept.items()}
        shape = known.shape
        self._mean = tf.constant(shape.mean, tf.float64)
        self._axes = tf.constant(shape.axes, tf.float64)
        self._variances = tf.constant(shape.variances, tf.float64)
        self._rest = shape.rest
        self._words = None
        if isinstance(tokenizer, WordTokenizer):
            words = tokenizer.get_vocabulary(include_special_tokens=False)
            self._words = keras.layers.StringLookup(vocabulary=[str(word) for word in words])

    def __call__(self, embedding, texts=None):
        """What an encoder's signature adds.

        Args:
            embedding: of the queries, as the encoder gives it.
            texts: the captions `(Q,)`, where the calibration counts words.

        Returns:
            `known_p_value`, float32 `(Q,)`, small for strange queries, and `unknown`, bool, where
            it is so small that the query should be declined: of held-out queries of the same kind
            1 in 100 at most.
        """
        columns = {"distance": self._distance(_coordinates(embedding))}
        if texts is not None:
            words = tf.strings.split(normalise(texts))
            columns |= self._of_words(words)
        p_values = [self._p_value(name, columns[name]) for name in self._names]
        least = tf.minimum(tf.reduce_min(p_values, axis=0) * len(p_values), 1.0)
        return {"known_p_value": tf.cast(least, tf.float32), "unknown": least <= ERROR}

    def _of_words(self, words):
        columns, count = {}, tf.cast(words.row_lengths(), tf.float64)
        if self._lengths is not None:
            least, most = self._lengths
            some = tf.maximum(count, 0.5)  # of an empty query
            away = tf.math.log(tf.maximum(least / some, some / most))
            columns["length"] = tf.maximum(away, 0.0)
        if self._words is not None:
            strange = words.with_values(tf.cast(self._words(words.values) == 0, tf.float64))
            share = tf.reduce_sum(strange, axis=1) / tf.maximum(count, 1.0)
            columns["unknown_share"] = tf.where(count > 0, share, 1.0)
        return columns

    def _distance(self, points):
        centred = points - self._mean
        along = tf.linalg.matmul(centred, self._axes, transpose_b=True)
        left = tf.reduce_sum(centred**2, axis=1) - tf.reduce_sum(along**2, axis=1)
        left = tf.maximum(left, 0.0)
        squared = tf.reduce_sum(along**2 / self._variances, axis=1) + left / self._rest
        return tf.sqrt(squared / self._mean.shape[0])

    def _p_value(self, name, values):
        kept = self._kept[name]
        # In the precision in which the held-out values are kept: equal ones must stay equal.
        place = tf.searchsorted(kept, tf.cast(values, tf.float32), side="left")
        count = kept.shape[0]
        return tf.cast(1 + count - place, tf.float64) / (count + 1)


def _coordinates(embedding):
    """`zoo.evaluation.known.coordinates`, of tensors."""
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
