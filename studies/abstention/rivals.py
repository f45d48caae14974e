"""Ways to say how likely an answer is right: one function a row of the table.

Each takes what the probes told and the rows of the benchmark, and gives a confidence `(R,)`, or it
and another number for whether anything matches. A raw number becomes a probability by one logistic
curve fitted on the same probes, which changes no order.
"""

import dataclasses

import keras
import numpy as np
from scipy.special import log_expit

from studies.abstention.told import columns
from studies.confidence_study import entropy as entropy_of
from zoo.embeddings.arrays import unit

DRAWS = 30  # of noise
NOISES = (0.05, 0.1, 0.2, 0.4, 0.8)  # lengths of it, beside unit vectors
NEIGHBOURS = 10
TEMPERATURES = (0.05, 0.1, 0.25, 0.5, 1.0)  # of the entropy, in deviations of a query's scores


def best_score(told, rows):
    return told.probability(told.inside.scores.top[:, 0], rows.scores.top[:, 0])


def best_minus_mean(told, rows):
    return _of(told, rows, lambda asked: asked.scores.top[:, 0] - asked.scores.mean)


def margin(told, rows):
    return _of(told, rows, lambda asked: asked.scores.top[:, 0] - asked.scores.top[:, 1])


def entropy(told, rows):
    """Of the softmax over the gallery; its temperature is chosen by the probes' likelihood."""

    def of(asked, temperature):
        return entropy_of(asked.scores, temperature)

    spread = float(np.median(np.sqrt(told.inside.scores.variance)))
    return _likeliest(told, rows, [spread * share for share in TEMPERATURES], of)


def question_uncertainty(told, rows):
    return _of(told, rows, lambda asked: asked.uncertainty)


def pair_uncertainty(told, rows):
    """Σσ² of the question and of its first answer."""
    return _of(told, rows, lambda a: np.logaddexp(a.uncertainty, a.answer_uncertainty))


def stability(told, rows):
    """uCLIP's: how often the first answer stays the first while the question's vector is shaken.

    The length of the noise is chosen by the probes' likelihood. The nearest twenty answers compete.
    """
    return _likeliest(told, rows, NOISES, _stays)


def vilu(told, rows, seed=0):
    """ViLU's classifier: an MLP of the question's vector, the answer's, and the attended answers'.

    Reference: Lafon et al., "ViLU: Learning Vision-Language Uncertainties for Failure Prediction",
        ICCV 2025: embeddings alone in, weighted cross-entropy. Here the answers that are attended
        to are the best twenty, and it learns from the probes in front of their own items.
    """
    keras.utils.set_random_seed(seed)
    asked, right = told.apart
    inputs = _vilu_inputs(asked)
    classifier = keras.Sequential(
        [
            keras.Input((inputs.shape[1],)),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(128, "relu"),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(1, "sigmoid"),
        ]
    )
    classifier.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy")
    is_held_out = np.random.default_rng(seed).random(told.groups.max() + 1)[told.groups] < 0.2
    weights = np.where(right, 1 / right.mean(), 1 / (1 - right.mean()))
    held_out, learning = (
        (inputs[part], right[part].astype("float32"), weights[part])
        for part in (is_held_out, ~is_held_out)
    )
    classifier.fit(
        *learning[:2],
        sample_weight=learning[2],
        validation_data=held_out,
        epochs=60,
        batch_size=64,
        verbose=0,
        callbacks=[keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)],
    )

    def logit(asked):
        said = np.clip(classifier.predict(_vilu_inputs(asked), verbose=0)[:, 0], 1e-6, 1 - 1e-6)
        return np.log(said) - np.log1p(-said)

    # Its curve is fitted on what it has not learnt from.
    groups = np.unique(told.groups[is_held_out], return_inverse=True)[1]
    part = dataclasses.replace(told, right=right[is_held_out], groups=groups)
    return part.probability(logit(asked)[is_held_out], logit(rows))


def density(told, rows):
    """How near the question's vector lies to others': the mean cosine of its ten nearest probes."""
    known = unit(told.inside.points)

    def near(points, skip):
        cosines = unit(points) @ known.T
        cosines = np.sort(cosines, axis=1)[:, ::-1]
        return cosines[:, skip : skip + NEIGHBOURS].mean(axis=1)

    there = near(rows.points, 0)
    # Whether a denser question is likelier right is learnt; that it is a known one is meant.
    return told.probability(near(told.inside.points, 1), there), there


def judge(told, rows, bench):
    """What `zoo.Retriever` says: its probability, and its evidence that anything matches."""
    judge = bench.retriever.judge
    confidence = judge.confidence
    features = confidence.features(rows.scores)
    said = confidence.logistic.probability(features)
    presence = confidence.in_gallery.matcher.logit(features)
    return _declined(bench, said, presence)


def _declined(bench, said, presence):
    """What is not understood is answered last, and taken for absent first."""
    strange = bench.not_understood
    return np.where(strange, 0.0, said), np.where(strange, presence.min() - 1, presence)


# By the name of a row. Those of the judge also read what the retriever understands.
ROWS = {
    "best score": best_score,
    "best − mean": best_minus_mean,
    "best − second": margin,
    "entropy": entropy,
    "σ of the question (PFE)": question_uncertainty,
    "σ of question and answer (PFE)": pair_uncertainty,
    "stability of the first answer (uCLIP)": stability,
    "classifier on embeddings (ViLU)": vilu,
    "density of the question": density,
}
JUDGES = {
    "the judge with probes": judge,
}


def _of(told, rows, number):
    return told.probability(number(told.inside), number(rows))


def _likeliest(told, rows, choices, number):
    """As `_of`, by the choice that makes the probes likeliest; `number` takes it too."""

    def likelihood(choice):
        values = columns(number(told.inside, choice))
        odds = told.curve(values).logit(values)
        return float(log_expit(np.where(told.right, odds, -odds)).mean())

    best = max(choices, key=lambda choice: (likelihood(choice), choice))
    return _of(told, rows, lambda asked: number(asked, best))


def _stays(asked, noise):
    """The share of shaken questions whose first answer is the same, `(Q,)`."""
    rng = np.random.default_rng(0)
    dim = asked.points.shape[1]
    shakes = rng.normal(0, noise / np.sqrt(dim), (DRAWS, dim)).astype(np.float32)
    # Noise moves a score in proportion to its product with the answer. In units of the score:
    # best answers' scores fall with their distance, whose slope is 2 (or 1, of cosines).
    moved = np.einsum("kd,qrd->qrk", shakes, asked.answers.astype(np.float32))
    slope = _slope(asked)
    shaken = asked.scores.top[:, :, None] + slope * moved
    return (np.argmax(shaken, axis=1) == 0).mean(axis=1)


def _slope(asked):
    """How much a score rises with the product of the two vectors, by least squares."""
    products = np.einsum("qd,qrd->qr", asked.points, asked.answers)
    x = products - products.mean(axis=1, keepdims=True)
    y = asked.scores.top - asked.scores.top.mean(axis=1, keepdims=True)
    return float((x * y).sum() / (x * x).sum())


def _vilu_inputs(asked):
    scores = asked.scores.top - asked.scores.top[:, :1]
    weights = np.exp(scores / max(scores.std(), 1e-6))
    weights = weights / weights.sum(axis=1, keepdims=True)
    attended = np.einsum("qr,qrd->qd", weights, asked.answers)
    parts = [unit(one) for one in (asked.points, asked.answers[:, 0], attended)]
    return np.concatenate(parts, axis=1).astype("float32") * np.sqrt(parts[0].shape[1])
