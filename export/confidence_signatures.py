"""How likely a query's first answer is right, as a TensorFlow function of a search's scores."""

import tensorflow as tf

from export import requests
from zoo.confidence import PORTABLE


def readable(confidence):
    """Whether a server can be asked: a run's calibration reads these features and no others."""
    return set(confidence.names) <= set(PORTABLE)


def answer_specs(confidence, batch_size):
    """The inputs of `answer`, float32 `(batch_size,)` each."""
    names = ["best_score", "mean_score", "score_variance"]
    if "uncertainty" in confidence.names:
        names.append("uncertainty")
    return [tf.TensorSpec((batch_size,), tf.float32, name=name) for name in names]


def answer(confidence, is_logarithm, best_score, mean_score, score_variance, uncertainty=None):
    """The probability that each query's first answer is right, and whether to give that answer.

    The numbers of `Confidence.probability`, in float64 within.

    Args:
        confidence: a `Confidence` that is `readable`.
        is_logarithm: whether the model's uncertainty is a logarithm as it is (`"log_det"`).
        best_score: `(Q,)`, the best score of each query, higher is better.
        mean_score, score_variance: `(Q,)`, of its scores over the whole gallery, as
            `zoo.confidence.GalleryMoments` gives them.
        uncertainty: `(Q,)`, as `encode_images` or `encode_captions` gave it, of models with one.

    Returns:
        `{"probability"}`, float32 `(Q,)`; with a certified threshold also `"answered"`, bool.
    """
    given = {
        "best_score": best_score,
        "mean_score": mean_score,
        "score_variance": score_variance,
        **({} if uncertainty is None else {"uncertainty": uncertainty}),
    }
    checked = {name: requests.features(values, name) for name, values in given.items()}
    best, mean, variance = (tf.cast(checked[name], tf.float64) for name in list(checked)[:3])
    positive = requests.require(
        tf.reduce_all(variance >= 0), "`score_variance` must not be negative"
    )
    with tf.control_dependencies([positive]):
        columns = {"best": best, "best_minus_mean": best - mean}
    columns["z_score"] = tf.math.divide_no_nan(best - mean, tf.sqrt(variance))
    if uncertainty is not None:
        value = tf.cast(checked["uncertainty"], tf.float64)
        columns["uncertainty"] = value if is_logarithm else tf.math.log(tf.maximum(value, 1e-12))
    logit = tf.constant(confidence.logistic.bias, tf.float64)
    rows = zip(confidence.names, *_weights(confidence.logistic), strict=True)
    for name, centre, spread, weight in rows:
        logit += weight * (columns[name] - centre) / spread
    probability = _recalibrated(confidence.recalibration, logit)
    outputs = {"probability": tf.cast(probability, tf.float32)}
    certificate = confidence.certificate
    if certificate is not None and certificate.threshold is not None:
        outputs["answered"] = probability >= certificate.threshold
    return outputs


def _weights(logistic):
    return (part.tolist() for part in (logistic.centre, logistic.spread, logistic.weights))


def _recalibrated(recalibration, logit):
    if recalibration is None:
        return tf.sigmoid(logit)
    if recalibration["kind"] == "platt":
        return tf.sigmoid(recalibration["slope"] * logit + recalibration["shift"])
    # Isotonic: straight lines between the points, level outside of them.
    at = tf.constant(recalibration["logit"], tf.float64)
    values = tf.constant(recalibration["probability"], tf.float64)
    if len(recalibration["logit"]) == 1:
        return tf.fill(tf.shape(logit), values[0])
    right = tf.clip_by_value(tf.searchsorted(at, logit, side="right"), 1, at.shape[0] - 1)
    low, high = tf.gather(at, right - 1), tf.gather(at, right)
    share = tf.clip_by_value((logit - low) / (high - low), 0.0, 1.0)
    return tf.gather(values, right - 1) * (1 - share) + tf.gather(values, right) * share
