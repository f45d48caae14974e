"""The judge of a gallery, as a TensorFlow function of a search's scores."""

import numpy as np
import tensorflow as tf

from export import requests
from zoo.confidence import JUDGED
from zoo.confidence.features import AGREEMENTS, LEAST_GAP, LOG_GAPS
from zoo.confidence.judge import ABSENCE, USUAL

ENOUGH = 0.1  # error of the lists


def readable(confidence):
    """Whether a server can be asked: a run's calibration reads these features and no others."""
    return set(confidence.names) <= set(JUDGED)


def answer_specs(confidence, batch_size):
    """The inputs of `answer`: float32 `(batch_size,)` each, of what has ranks one a rank."""
    shapes = {name: (batch_size,) for name in ("best_score", "mean_score", "score_variance")}
    following = sum(name in LOG_GAPS for name in confidence.names)
    if following:
        shapes["following_scores"] = (batch_size, following)
    ranks = sum(name in AGREEMENTS for name in confidence.names)
    if ranks:
        shapes["agreement"] = (batch_size, ranks)
    if "uncertainty" in confidence.names:
        shapes["uncertainty"] = (batch_size,)
    return [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()]


def answer(confidence, is_logarithm, best_score, mean_score, score_variance, *more):
    """What `zoo.retriever.Judge` says of each query's first answer, in float64 within.

    Args:
        confidence: a `Confidence` that is `readable`.
        is_logarithm: whether the model's uncertainty is a logarithm as it is (`"log_det"`).
        best_score: `(Q,)`, the best score of each query, higher is better.
        mean_score, score_variance: `(Q,)`, of its scores over the whole gallery, as
            `zoo.confidence.GalleryMoments` gives them.
        *more: where the calibration reads them, `following_scores`, `(Q, ranks)`, of answers 2, 5,
            10 and 20, as `QueryScores.following` gives them, `agreement`, `(Q, ranks)`, as
            `zoo.confidence.agreement` gives it, the first ones of either that the shape takes, and
            `uncertainty`, `(Q,)`, as `encode_images` or `encode_captions` gave it.

    Returns:
        `{"probability", "answered"}`, float32 and bool `(Q,)`: `answered` is the verdict "likely",
        or "unsure" where it is false. Of a calibration by probes also `nothing_matches`, bool, the
        verdict that goes before both, and `first_k`, int64: so many results hold the wanted one 9
        times in 10. What is `unknown` says the encoder.
    """
    names = [spec.name for spec in answer_specs(confidence, None)]
    given = dict(zip(names, (best_score, mean_score, score_variance, *more), strict=True))
    checked = {
        name: tf.cast(requests.features(values, name), tf.float64) for name, values in given.items()
    }
    best, mean, variance = (checked[name] for name in names[:3])
    positive = requests.require(
        tf.reduce_all(variance >= 0), "`score_variance` must not be negative"
    )
    with tf.control_dependencies([positive]):
        columns = {"best": best, "best_minus_mean": best - mean}
    columns["z_score"] = tf.math.divide_no_nan(best - mean, tf.sqrt(variance))
    if "following_scores" in checked:
        following = tf.unstack(checked["following_scores"], axis=1)
        columns |= {
            name: _log_gap(best, score, variance)
            for name, score in zip(LOG_GAPS, following, strict=False)
        }
    if "agreement" in checked:
        ranks = tf.unstack(checked["agreement"], axis=1)
        columns |= dict(zip(AGREEMENTS, ranks, strict=False))
    if "uncertainty" in checked:
        value = checked["uncertainty"]
        columns["uncertainty"] = value if is_logarithm else tf.math.log(tf.maximum(value, 1e-12))
    logit = _logit(confidence.logistic, confidence.names, columns)
    probability = _recalibrated(confidence.recalibration, logit)
    certificate = confidence.certificate
    is_certified = certificate is not None and certificate.threshold is not None
    outputs = {
        "probability": tf.cast(probability, tf.float32),
        "answered": probability >= (certificate.threshold if is_certified else USUAL),
    }
    promises = confidence.promises
    if promises is None:
        return outputs
    outputs["nothing_matches"] = tf.zeros_like(outputs["answered"])
    if promises.matcher is not None and len(promises.absent):
        like = _logit(promises.matcher, confidence.names, columns)
        kept = tf.constant(promises.present, tf.float32)
        at_most = tf.searchsorted(kept, tf.cast(like, tf.float32), side="right")
        share = tf.cast(1 + at_most, tf.float64) / (len(promises.present) + 1)
        outputs["nothing_matches"] = share <= ABSENCE
    outputs["first_k"] = _list_length(promises.list_length(ENOUGH), logit)
    return outputs


def _log_gap(best, score, variance):
    least = LEAST_GAP * tf.sqrt(variance)
    gap = tf.where(least > 0, best - score + least, 1.0)
    return tf.math.log(gap)


def _logit(logistic, names, columns):
    logit = tf.constant(logistic.bias, tf.float64)
    arrays = (part.tolist() for part in (logistic.centre, logistic.spread, logistic.weights))
    for name, centre, spread, weight in zip(names, *arrays, strict=True):
        logit += weight * (columns[name] - centre) / spread
    return logit


def _list_length(length, logit):
    """`zoo.confidence.list_length.ListLength` of tensors."""
    if not np.isfinite(length.shift):
        return tf.fill(tf.shape(logit), tf.constant(length.most, tf.int64))
    logit = tf.cast(tf.cast(logit, tf.float32), tf.float64)  # as the calibration's are kept
    rising, first = np.unique(length.confidence, return_index=True)
    found = tf.exp(_interpolated(logit, rising, length.shape[first]) + length.shift)
    return tf.cast(tf.clip_by_value(tf.floor(found + 1e-6), 1, length.most), tf.int64)


def _recalibrated(recalibration, logit):
    if recalibration is None:
        return tf.sigmoid(logit)
    if recalibration["kind"] == "platt":
        return tf.sigmoid(recalibration["slope"] * logit + recalibration["shift"])
    return _interpolated(logit, recalibration["logit"], recalibration["probability"])


def _interpolated(logit, points, heights):
    """Straight lines between the points, level outside of them, as `numpy.interp`."""
    at, values = tf.constant(points, tf.float64), tf.constant(heights, tf.float64)
    if at.shape[0] == 1:
        return tf.fill(tf.shape(logit), values[0])
    right = tf.clip_by_value(tf.searchsorted(at, logit, side="right"), 1, at.shape[0] - 1)
    low, high = tf.gather(at, right - 1), tf.gather(at, right)
    share = tf.clip_by_value((logit - low) / (high - low), 0.0, 1.0)
    return tf.gather(values, right - 1) * (1 - share) + tf.gather(values, right) * share
