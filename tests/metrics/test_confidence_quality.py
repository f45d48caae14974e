"""nAUC, calibration error and their table by hand."""

import numpy as np
import pytest

from zoo.confidence import (
    abstention_auc,
    confidence_quality,
    expected_calibration_error,
    reliability,
)


def released(confidence, correct):
    """MTEB's abstention curves, as it computes them."""
    rates = np.linspace(0, 1, 11)[:-1]

    def curve(scores):
        order = np.argsort(scores)
        drop = [min(round(rate * len(order)), len(order) - 1) for rate in rates]
        return np.array([correct[order[d:]].mean() for d in drop])

    def area(values):
        return np.trapezoid(values, rates)

    flat = area(np.full(10, correct.mean()))
    return (area(curve(confidence)) - flat) / (area(curve(correct.astype(float))) - flat)


# At 15, 35, 45 and 55 a tenth of the queries ends in a half, which MTEB rounds to even numbers.
@pytest.mark.parametrize("count", [15, 35, 37, 45, 55, 100, 1003])
def test_it_is_mtebs(count):
    rng = np.random.default_rng(count)
    confidence = rng.permutation(count) / count
    correct = rng.random(count) < confidence
    expected = released(confidence, correct)
    np.testing.assert_allclose(abstention_auc(confidence, correct), expected, atol=1e-12)


def test_its_scale():
    rng = np.random.default_rng(0)
    correct = rng.random(20_000) < 0.4
    assert abstention_auc(correct, correct) == pytest.approx(1)
    assert abstention_auc(np.zeros(20_000), correct) == pytest.approx(0, abs=1e-12)
    assert abs(abstention_auc(rng.random(20_000), correct)) < 0.02
    assert abstention_auc(~correct, correct) < -0.5
    assert np.isnan(abstention_auc([0.1, 0.2], [True, True]))
    assert np.isnan(abstention_auc([0.1, 0.2], [False, False]))


def test_equal_confidences_are_taken_in_every_order():
    rng = np.random.default_rng(1)
    confidence, correct = rng.integers(0, 4, 200), rng.random(200) < 0.5
    noisy = [abstention_auc(confidence + 1e-6 * rng.random(200), correct) for _ in range(400)]
    deviation = np.std(noisy) / 20
    assert abs(abstention_auc(confidence, correct) - np.mean(noisy)) < 4 * deviation


def test_calibration_error_by_hand():
    probability = [0.1, 0.2, 0.8, 0.9]
    correct = [False, True, True, True]
    assert expected_calibration_error(probability, correct, 2) == pytest.approx((0.35 + 0.15) / 2)
    diagram = reliability(probability, correct, 2)
    np.testing.assert_allclose(diagram["probability"], [0.15, 0.85])
    np.testing.assert_allclose(diagram["accuracy"], [0.5, 1.0])
    np.testing.assert_array_equal(diagram["count"], [2, 2])
    assert expected_calibration_error([1.0, 0.0], [True, False]) == 0


def test_the_table_of_a_true_probability():
    rng = np.random.default_rng(2)
    probability = rng.random(5000)
    quality = confidence_quality(probability, rng.random(5000) < probability)
    assert quality["spearman_of_bins"] < -0.97
    assert quality["calibration_error"] < 0.03
    assert 0.4 < quality["nauc"] < 1
    assert quality["oracle_aurc"] < quality["aurc"] < quality["random_aurc"]
    assert "calibration_error" not in confidence_quality(-probability, probability > 0.5)
