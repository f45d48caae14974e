"""The probability and the decision that an export gives are those of `zoo.confidence`."""

import numpy as np
import pytest
import tensorflow as tf

from export.signatures import Signatures
from zoo.confidence import JUDGED, Confidence, QueryScores

RNG = np.random.default_rng(0)
SIMILARITY = RNG.normal(size=(400, 50)) + 2 * RNG.random((400, 1))
CORRECT = SIMILARITY.max(axis=1) + 0.5 * RNG.normal(size=400) > 3.2
VECTORS = RNG.normal(size=(50, 6))  # of the gallery
VARIANCE = RNG.uniform(0.1, 2, 400)  # as `encode_captions` gives the uncertainty: no logarithm
FIRST, SECOND = slice(0, 200), slice(200, 400)


def scores(queries, agreeing=True):
    return QueryScores.of_matrix(SIMILARITY[queries], vectors=VECTORS if agreeing else None)


def calibrated(recalibration=None, log=np.log, agreeing=True):
    confidence = Confidence.fit(
        scores(FIRST, agreeing),
        CORRECT[FIRST],
        log(VARIANCE[FIRST]),
        names=JUDGED,
        recalibration=recalibration,
    )
    return confidence.certified(
        scores(SECOND, agreeing), CORRECT[SECOND], log(VARIANCE[SECOND]), risk=0.4, failure=0.1
    )


def signature(model, direction, confidence):
    """It alone is traced, of all that the export has."""
    functions = Signatures(model, calibrations={direction: confidence}).functions
    return functions[f"confidence_{direction}"].get_concrete_function()


def asked(model, confidence):
    """What the signature says of the second half of the queries."""
    function = signature(model, "t2i", confidence)
    found = scores(SECOND)
    given = {
        "best_score": found.top[:, 0],
        "mean_score": found.mean,
        "score_variance": found.variance,
        "following_scores": found.following,
        "agreement": found.agreement,
        "uncertainty": VARIANCE[SECOND],
    }
    specs = function.structured_input_signature[0]
    return function(*(tf.constant(given[spec.name], tf.float32) for spec in specs))


@pytest.mark.parametrize("recalibration", [None, "platt", "isotonic"])
@pytest.mark.parametrize("measure", ["total_variance", "log_det"])
@pytest.mark.parametrize("agreeing", [True, False])
def test_it_says_what_the_calibration_says(pcme, recalibration, measure, agreeing, monkeypatch):
    monkeypatch.setattr(pcme.model, "uncertainty_measure", measure)
    log = np.log if measure == "total_variance" else np.asarray
    confidence = calibrated(recalibration, log, agreeing)
    assert ("agreement_20" in confidence.names) == agreeing
    found = asked(pcme.model, confidence)
    expected = confidence.probability(scores(SECOND, agreeing), log(VARIANCE[SECOND]))
    np.testing.assert_allclose(found["probability"], expected, atol=1e-5)
    threshold = confidence.certificate.threshold
    clear = np.abs(expected - threshold) > 1e-5
    np.testing.assert_array_equal(found["answered"][clear], (expected >= threshold)[clear])
    assert 0 < np.mean(found["answered"]) < 1


def test_without_a_certified_threshold_one_half_decides(pcme):
    learnt = Confidence.fit(SIMILARITY, CORRECT, np.log(VARIANCE), names=JUDGED)
    found = asked(pcme.model, learnt)
    assert set(found) == {"probability", "answered"}
    np.testing.assert_array_equal(found["answered"], found["probability"].numpy() >= 0.5)


def test_a_calibration_of_further_features_has_no_signature(pcme):
    whole = Confidence.fit(SIMILARITY, CORRECT)
    assert "confidence_t2i" not in Signatures(pcme.model, calibrations={"t2i": whole}).functions
    for direction, there in (("i2t", True), ("t2i", False)):
        module = Signatures(pcme.model, image_only=True, calibrations={direction: calibrated()})
        assert (f"confidence_{direction}" in module.functions) == there


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mean_score": np.nan}, "`mean_score` must be finite"),
        ({"score_variance": -1.0}, "`score_variance` must not be negative"),
        ({"following_scores": np.nan}, "`following_scores` must be finite"),
        ({"agreement": np.nan}, "`agreement` must be finite"),
    ],
)
def test_bad_scores_are_refused(pcme, wrong, said):
    function = signature(pcme.model, "i2t", calibrated())
    specs = function.structured_input_signature[0]
    given = [tf.fill((1, *spec.shape[1:]), wrong.get(spec.name, 1.0)) for spec in specs]
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        function(*given)


def test_one_row_does_not_stand_for_many(pcme):
    function = signature(pcme.model, "i2t", calibrated())
    specs = function.structured_input_signature[0]
    given = [tf.ones((3 if n else 1, *spec.shape[1:])) for n, spec in enumerate(specs)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have as many rows as"):
        function(*given)
