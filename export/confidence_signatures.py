"""How likely a query's first answer is right, as a TensorFlow function of a search's scores."""

import tensorflow as tf

from export import requests
from zoo.confidence import PORTABLE
from zoo.confidence.answer_agreement import RANKS


def readable(confidence):
    """Whether a server can be asked: a run's calibration reads these features and no others."""
    return set(confidence.names) <= set(PORTABLE)


def answer_specs(confidence, batch_size):
    """The inputs of `answer`: float32 `(batch_size,)` each, of the agreement one a rank."""
    shapes = {name: (batch_size,) for name in ("best_score", "mean_score", "score_variance")}
    ranks = sum(name.startswith("agreement_") for name in confidence.names)
    if ranks:
        shapes["agreement"] = (batch_size, ranks)
    if "uncertainty" in confidence.names:
        shapes["uncertainty"] = (batch_size,)
    return [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()]


def answer(confidence, is_logarithm, best_score, mean_score, score_variance, *more):
    """The probability that each query's first answer is right, and whether to give that answer.

    The numbers of `Confidence.probability`, in float64 within.

    Args:
        confidence: a `Confidence` that is `readable`.
        is_logarithm: whether the model's uncertainty is a logarithm as it is (`"log_det"`).
        best_score: `(Q,)`, the best score of each query, higher is better.
        mean_score, score_variance: `(Q,)`, of its scores over the whole gallery, as
            `zoo.confidence.GalleryMoments` gives them.
        *more: where the calibration reads them, `agreement`, `(Q, ranks)`, as
            `zoo.confidence.agreement` gives it, and `uncertainty`, `(Q,)`, as `encode_images` or
            `encode_captions` gave it.

    Returns:
        `{"probability"}`, float32 `(Q,)`; with a certified threshold also `"answered"`, bool.
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
    if "agreement" in checked:
        ranks = tf.unstack(checked["agreement"], axis=1)
        columns |= {f"agreement_{rank}": x for rank, x in zip(RANKS, ranks, strict=False)}
    if "uncertainty" in checked:
        value = checked["uncertainty"]
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
