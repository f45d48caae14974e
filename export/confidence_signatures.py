"""The judge of a gallery, as a TensorFlow function of a search's scores."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import logit, stdtrit

from export import requests
from zoo.confidence import fits as fitting
from zoo.confidence.features import AGREEMENTS, LEAST_GAP
from zoo.confidence.judge import ABSENCE, ABSENT, LIKELY, LOW, UNSURE, Judge
from zoo.confidence.scores import DEPTH
from zoo.embeddings.csls import CorrectedSpace

ENOUGH = 0.1  # error of `first_k`, and of the interval


class ServedJudge(NamedTuple):
    """What judges the answers of the gallery that is served.

    Attributes:
        judge: a `zoo.confidence.judge.Judge`.
        reference: the embeddings of the probes' items, of `Probes.items`, or None.
        hubs: how the gallery is corrected, or None.
    """

    judge: Judge
    reference: dict | None = None
    hubs: CorrectedSpace | None = None


def reference_scores(similarity, direction, items, embedding):
    """The mean of each question's best scores over the probes' items, float32 `(Q,)`.

    Args:
        similarity: function of images and captions to `(N, M)`, higher is better.
        direction: `"i2t"` or `"t2i"`.
        items: embeddings, a dict of tensors.
        embedding: of the questions.
    """
    items = {name: tf.cast(items[name], embedding[name].dtype) for name in embedding}
    if direction == "i2t":
        scores = similarity(embedding, items)
    else:
        scores = tf.transpose(similarity(items, embedding))
    most = min(fitting.REFERENCE, scores.shape[1])
    return tf.reduce_mean(tf.math.top_k(scores, most, sorted=False).values, axis=1)


def readable(confidence):
    """Whether a server can be asked: probes have made the calibration, from scores alone."""
    return confidence.in_gallery is not None and "uncertainty" not in confidence.names


def reads_reference(judge):
    """Whether the mean of a question's best scores over the probes' items counts."""
    return judge.fits is not None and judge.fits.presence is not None


def reads_words(judge):
    """Whether short questions are judged by a prior of their words."""
    return judge.fits is not None and judge.fits.words is not None


def answer_specs(judge, batch_size):
    """The inputs of `answer`: float32, a row for each question."""
    shapes = {
        "top_scores": (batch_size, min(DEPTH, judge.confidence.in_gallery.size)),
        "mean_score": (batch_size,),
        "score_variance": (batch_size,),
        "second_score": (batch_size,),
    }
    ranks = sum(name in AGREEMENTS for name in judge.confidence.names)
    if ranks:
        shapes["agreement"] = (batch_size, ranks)
    if reads_reference(judge):
        shapes["reference_score"] = (batch_size,)
    if reads_words(judge):
        shapes["prior"] = (batch_size,)
    return [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()]


def answer(judge, *inputs):
    """What `zoo.confidence.judge.Judge` says of each question, in float64 within.

    Args:
        judge: a `Judge` whose confidence is `readable`.
        *inputs: those of `answer_specs`: `top_scores`, `(Q, R)`, the best 20 of each question, best
            first, higher is better; `mean_score`, `score_variance` and `second_score`, `(Q,)`, and
            `agreement`, `(Q, ranks)`, as `zoo.confidence.QueryScores` has them; `reference_score`
            and `prior`, `(Q,)`, as the encoders returned them.

    Returns:
        `wanted` and `first_k`, `(Q,)`, and `verdict`, strings: `"likely"`, `"unsure"` or `"nothing
        matches"`; the encoder's `unknown` goes before it. Where it is known what fits, also `fits`,
        `(Q, R)`, `number`, `low` and `high`, `(Q,)`, the last two NaN of short questions, see
        `zoo.retriever.Answer`. The sentence of an answer follows from these numbers and is not part
        of the signature.
    """
    names = [spec.name for spec in answer_specs(judge, None)]
    given = dict(zip(names, inputs, strict=True))
    prior = given.pop("prior", None)  # NaN of a sentence
    given = {
        name: tf.cast(requests.features(values, name), tf.float64) for name, values in given.items()
    }
    positive = requests.require(
        tf.reduce_all(given["score_variance"] >= 0), "`score_variance` must not be negative"
    )
    with tf.control_dependencies([positive]):
        top = tf.identity(given["top_scores"])
    if prior is not None:
        prior = tf.cast(prior, tf.float64)
    numbers = _Numbers(judge, {**given, "top_scores": top}, prior)
    return {
        name: values if values.dtype in (tf.string, tf.int64) else tf.cast(values, tf.float32)
        for name, values in numbers.outputs().items()
    }


class _Numbers:
    """`Judge.probabilities` of tensors."""

    def __init__(self, judge, given, prior):
        self.judge, self.confidence, self.fits = judge, judge.confidence, judge.fits
        self.top, self.mean = given["top_scores"], given["mean_score"]
        self.variance, self.second = given["score_variance"], given["second_score"]
        self.given, self.best = given, self.top[:, 0]
        self.size = (judge.gallery or judge.confidence.in_gallery).size
        self.prior = prior
        count = tf.shape(self.best)
        self.short = tf.zeros(count, tf.bool) if prior is None else ~tf.math.is_nan(prior)
        self.zero, self.one = (tf.fill(count, tf.constant(x, tf.float64)) for x in (0.0, 1.0))

    def outputs(self):
        seen, columns = self.confidence.in_gallery, self._features()
        odds = _logit(self.confidence.logistic, columns)
        number = None if self.fits is None else self._number()
        wanted, factor, present = tf.sigmoid(odds), *self._presence(columns, number)
        own = tf.concat([wanted[:, None], self._later(odds)], axis=1)
        first = wanted
        said = {"wanted": wanted, "first_k": tf.fill(tf.shape(wanted), tf.constant(self._k()))}
        if self.fits is not None:
            own = tf.where(self.short[:, None], tf.zeros_like(own), own)
            others = self._others(self.top)
            said["fits"] = (own + (1 - own) * others) * factor[:, None]
            brought = tf.where(self.short, self.zero, seen.brought * self.one)
            said["number"] = factor * (number + brought)
            first, by_chance = said["fits"][:, 0], others[:, 0]
            ends = self._interval(wanted)
            ends = [factor * (end * (1 - by_chance) + by_chance) for end in ends]
            ends = [tf.where(self.short, np.nan * self.one, end) for end in ends]
        elif self.judge.by_class:
            said |= {"fits": own, "number": seen.brought * self.one}
            first, ends = own[:, 0], self._interval(wanted)
        else:
            ends = []
        said |= dict(zip(("low", "high"), ends, strict=False))
        is_absent = present <= ABSENCE
        if self.fits is not None:
            rare = self.short & (first < self.fits.words_below)
            is_absent = rare | (~self.short & is_absent & (first < LOW))
        likely = tf.where(first >= self.judge.threshold, LIKELY, UNSURE)
        return {**said, "verdict": tf.where(is_absent, ABSENT, likely)}

    def _features(self):
        above, deviation = self.best - self.mean, tf.sqrt(self.variance)
        least = LEAST_GAP * deviation
        gap = tf.where(least > 0, self.best - self.second + least, self.one)
        columns = {
            "best_minus_mean": above,
            "z_score": tf.math.divide_no_nan(above, deviation),
            "log_gap_2": tf.math.log(gap),
        }
        if "agreement" in self.given:
            columns |= zip(AGREEMENTS, tf.unstack(self.given["agreement"], axis=1), strict=False)
        return tf.stack([columns[name] for name in self.confidence.names], axis=1)

    def _presence(self, columns, number):
        """The factor, and whether something fits: above `ABSENCE` unless hardly any does so."""
        if reads_reference(self.judge):
            gap = self.best - self.second + LEAST_GAP * tf.sqrt(self.variance)
            table = [
                self.best,
                self.best - self.given["reference_score"],
                tf.math.log(tf.maximum(gap, 1e-9)),
                np.log(self.size) * tf.ones_like(self.best),
                tf.math.log(number + fitting.LEAST_NUMBER),
            ]
            odds = _logit(self.fits.presence, tf.stack(table, axis=1))
            factor = tf.sigmoid(odds + logit(fitting.ANSWERABLE))
            present = tf.where(odds > self.fits.absent_below, self.one, self.zero)
            return tf.where(self.short, self.one, factor), tf.where(self.short, self.one, present)
        seen = self.confidence.in_gallery
        if seen.matcher is None:
            return self.one, self.one
        kept = tf.constant(seen.present, tf.float64)
        at_most = tf.searchsorted(kept, _logit(seen.matcher, columns), side="right")
        return self.one, tf.cast(1 + at_most, tf.float64) / (len(seen.present) + 1)

    def _later(self, odds):
        ranked, top = self.confidence.in_gallery.ranked, self.top
        if ranked is None:
            return tf.zeros_like(top[:, 1:])
        deviation = tf.maximum(tf.sqrt(self.variance), 1e-12)[:, None]
        behind = tf.minimum((top[:, :1] - top[:, 1:]) / deviation, 1e6)
        ranks = np.log(np.arange(2, top.shape[1] + 1))
        columns = odds[:, None], behind, tf.constant(ranks, tf.float64)[None]
        columns = [tf.broadcast_to(one, tf.shape(behind)) for one in columns]
        return tf.sigmoid(_logit(ranked, tf.stack(columns, axis=-1)))

    def _others(self, scores):
        """`Fits.others`."""
        slope, bias = self.fits.sentence
        odds = slope * scores + bias
        if self.prior is None or self.fits.words is None:
            return tf.sigmoid(odds)
        slope, weight, bias = self.fits.words
        prior = tf.where(self.short, self.prior, self.zero)[:, None]
        short = slope * scores + weight * prior + bias
        return tf.sigmoid(tf.where(self.short[:, None], short, odds))

    def _number(self):
        """`Fits.number`."""
        top, depth = self.top, self.top.shape[1]
        rest, some = float(self.size - depth), max(self.size - depth, 1)
        middle = (self.size * self.mean - tf.reduce_sum(top, 1)) / some
        squares = self.size * (self.variance + self.mean**2) - tf.reduce_sum(top**2, 1)
        deviation = tf.sqrt(tf.maximum(squares / some - middle**2, 1e-12))
        end = tf.minimum((top[:, -1] - middle) / deviation, fitting.REACH)
        half = tf.maximum((end + fitting.REACH) / 2, 1e-6)
        nodes = tf.constant(fitting.NODES + 1, tf.float64)
        z = half[:, None] * nodes - fitting.REACH
        density = tf.constant(fitting.WEIGHTS, tf.float64) * tf.exp(-0.5 * z**2)
        likely = self._others(middle[:, None] + deviation[:, None] * z)
        mean = tf.reduce_sum(density * likely, 1) / tf.reduce_sum(density, 1)
        return tf.reduce_sum(self._others(top), 1) + rest * mean

    def _interval(self, probability):
        seen = self.confidence.in_gallery
        if seen.num_kinds < 2:
            return []
        width = float(seen.deviation * stdtrit(seen.num_kinds - 1, 1 - ENOUGH / 2))
        odds = tf.math.log(probability) - tf.math.log1p(-probability)
        return [tf.sigmoid(odds - width), tf.sigmoid(odds + width)]

    def _k(self):
        return np.int64(self.judge.length(ENOUGH))


def _logit(logistic, columns):
    parts = (logistic.centre, logistic.spread, logistic.weights)
    centre, spread, weights = (tf.constant(part, tf.float64) for part in parts)
    return tf.reduce_sum((columns - centre) / spread * weights, axis=-1) + logistic.bias
