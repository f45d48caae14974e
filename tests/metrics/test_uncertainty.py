"""Uncertainty: recall by it, risk-coverage, nAUC, calibration error, statistics by hand."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from studies.statistics import auroc
from zoo import metrics
from zoo.metrics import (
    Estimate,
    bootstrap,
    recall_by_uncertainty,
    risk_coverage,
    spearman,
    spearman_of_bins,
    uncertainty_verdict,
    wilson_interval,
)
from zoo.metrics.confidence import (
    abstention_auc,
    confidence_quality,
    expected_calibration_error,
    reliability,
)
from zoo.metrics.statistics import nan_mean, percentage


def problem(queries=103, seed=0):
    rng = np.random.default_rng(seed)
    uncertainty = rng.permutation(queries).astype(float)
    relevance = np.zeros((queries, 2), bool)
    relevance[:, 0] = True
    similarity = np.where(uncertainty[:, None] < queries / 2, [[1.0, 0.0]], [[0.0, 1.0]])
    return similarity, relevance, uncertainty


def test_bins_are_quantiles_from_certain_to_uncertain():
    similarity, relevance, uncertainty = problem()
    bins = recall_by_uncertainty(similarity, relevance, uncertainty, bins=10)
    assert bins["count"].sum() == 103
    assert set(bins["count"]) == {10, 11}
    assert (np.diff(bins["uncertainty"]) > 0).all()
    np.testing.assert_array_equal(bins["recall"][[0, 1, 2, 3, 6, 7, 8, 9]], [1] * 4 + [0] * 4)
    overall = np.sum(bins["recall"] * bins["count"]) / 103
    assert overall == pytest.approx(np.mean(uncertainty < 51.5))


def test_ties_share_a_bin_whatever_the_order():
    similarity, relevance, uncertainty = problem()
    uncertainty = np.floor(uncertainty / 20)
    expected = recall_by_uncertainty(similarity, relevance, uncertainty, bins=4)
    order = np.random.default_rng(1).permutation(103)
    shuffled = recall_by_uncertainty(
        similarity[order], relevance[order], uncertainty[order], bins=4
    )
    for key, value in expected.items():
        np.testing.assert_allclose(shuffled[key], value)
    constant = recall_by_uncertainty(similarity, relevance, np.ones(103), bins=4)
    assert sorted(constant["count"]) == [0, 0, 0, 103]
    assert np.isnan(constant["recall"]).sum() == 3
    assert np.isnan(spearman_of_bins(constant["recall"]))  # one bin has no order


def test_queries_without_positives_are_left_out():
    similarity, relevance, uncertainty = problem()
    left = np.random.default_rng(2).permutation(103)[:3]
    kept = np.setdiff1d(np.arange(103), left)
    expected = recall_by_uncertainty(similarity[kept], relevance[kept], uncertainty[kept])
    relevance[left] = False
    found = recall_by_uncertainty(similarity, relevance, uncertainty)
    assert found["count"].sum() == 100
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value)


def test_risk_coverage_against_loops():
    rng = np.random.default_rng(0)
    uncertainty, error = rng.normal(size=50), rng.random(50)
    curve = risk_coverage(uncertainty, error)
    order = np.argsort(uncertainty)
    expected = [error[order[: i + 1]].mean() for i in range(50)]
    np.testing.assert_allclose(curve["risk"], expected)
    np.testing.assert_allclose(curve["coverage"], np.arange(1, 51) / 50)
    assert curve["aurc"] == pytest.approx(np.mean(expected))
    assert curve["oracle_aurc"] < curve["aurc"]
    assert curve["risk"][-1] == pytest.approx(curve["random_aurc"])


def test_aurc_lies_between_oracle_and_its_mirror():
    error = np.array([0.0, 0.0, 1.0, 1.0])
    assert risk_coverage(error, error)["aurc"] == risk_coverage(error, error)["oracle_aurc"]
    assert risk_coverage(-error, error)["aurc"] > risk_coverage(error, error)["random_aurc"]


def test_tied_uncertainty_is_the_expectation_over_orders():
    error = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    uncertainty = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    rng = np.random.default_rng(0)
    curves = [risk_coverage(uncertainty + 1e-6 * rng.random(5), error)["risk"] for _ in range(4000)]
    np.testing.assert_allclose(
        risk_coverage(uncertainty, error)["risk"], np.mean(curves, axis=0), atol=0.02
    )
    constant = risk_coverage(np.zeros(5), error)
    assert constant["aurc"] == pytest.approx(constant["random_aurc"])


def test_spearman_equals_scipy():
    rng = np.random.default_rng(0)
    first = np.round(rng.normal(size=200), 1)
    second = np.round(first + rng.normal(size=200), 1)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert spearman(first, np.exp(first)) == pytest.approx(1)
    assert np.isnan(spearman(first, np.ones(200)))
    recall = np.where(np.arange(200) % 3, first, np.nan)
    there = np.isfinite(recall)
    expected = stats.spearmanr(np.flatnonzero(there), recall[there]).statistic
    assert spearman_of_bins(recall) == pytest.approx(expected)


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


def test_the_interval_of_a_mean_is_the_normal_one():
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    found = bootstrap(np.mean, values, resamples=4000)
    half = norm.ppf(0.975) * values.std() / 20
    assert found.value == values.mean()
    assert found.n == 400
    np.testing.assert_allclose(
        [found.low, found.high], values.mean() + np.array([-half, half]), atol=0.02
    )


def test_resamples_follow_from_the_seed_and_go_by_query():
    first, second = np.random.default_rng(0).normal(size=(2, 50))
    both = bootstrap(lambda a, b: np.mean(a - b), first, second, resamples=30, seed=3)
    rng = np.random.default_rng(3)
    drawn = [np.mean((first - second)[rng.integers(0, 50, 50)]) for _ in range(30)]
    np.testing.assert_allclose([both.low, both.high], np.quantile(drawn, [0.025, 0.975]))
    assert both != bootstrap(lambda a, b: np.mean(a - b), first, second, resamples=30, seed=4)


def test_what_is_undefined_is_said_and_left_out():
    assert bootstrap(lambda v: math.nan, [1.0]).text() == "undefined"
    known = bootstrap(nan_mean, [np.nan, 2.0, 4.0], resamples=100)
    assert known.value == 3.0
    assert 2.0 <= known.low <= known.high <= 4.0
    assert bootstrap(percentage, [True, False]).value == 50.0
    assert Estimate(-1.25, -2.0, 0.5, 9).text("+.2f") == "−1.25 [−2.00, +0.50]"


@pytest.mark.filterwarnings("error")
def test_constant_numbers_have_no_correlation_and_no_warning():
    assert np.isnan(spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
    assert np.isnan(spearman([1.0, 2.0, 3.0], np.full(3, 0.1)))


def test_wilson_ends_are_where_the_score_test_just_does_not_reject():
    successes, counts = np.array([0, 3, 10]), np.array([10, 12, 10])
    z = norm.ppf(0.975)
    for k, n, *ends in zip(successes, counts, *wilson_interval(successes, counts), strict=True):
        for p in ends:
            assert abs(k / n - p) <= z * np.sqrt(p * (1 - p) / n) + 1e-9
            assert 0 <= p <= 1
    with pytest.raises(ValueError):
        wilson_interval([3], [2])


def test_verdicts():
    rng = np.random.default_rng(0)
    noise = rng.random(400)
    wrong = rng.random(400) < noise
    assert uncertainty_verdict(noise, wrong).kind == "informative"
    assert uncertainty_verdict(-noise, wrong).kind == "misleading"
    unrelated = uncertainty_verdict(rng.random(400), wrong)
    assert unrelated.kind == "not informative"
    assert unrelated.gain.low < 0 < unrelated.gain.high
    assert "This uncertainty is not informative" in unrelated.sentence
    constant = uncertainty_verdict(np.zeros(400), wrong)
    assert constant.kind == "not informative"
    assert constant.gain.value == pytest.approx(0.0)
    assert uncertainty_verdict(noise, np.ones(400)).kind == "undefined"
    assert uncertainty_verdict(noise, wrong, least=0.9).kind == "weak"


def test_auroc_by_hand_and_ties_count_half():
    assert auroc([3.0, 1.0], [2.0, 1.0]) == pytest.approx((2 + 0.5) / 4)
    assert auroc([1.0], [0.0]) == 1.0
    with pytest.raises(ValueError, match="one value a query"):
        auroc([], [1.0])


def test_chance_is_the_mean_over_random_rankings():
    rng = np.random.default_rng(0)
    relevance = rng.random((12, 40)) < 0.15
    relevance[3] = False  # a query without positives counts on neither side
    runs = [
        metrics.evaluate_retrieval(rng.random(relevance.shape), relevance, ks=(1, 3))
        for _ in range(1000)
    ]
    expected = metrics.chance(relevance, ks=(1, 3))
    for key, value in expected.items():
        values = np.array([run[key] for run in runs])
        assert abs(values.mean() - value) < 5 * values.std() / np.sqrt(len(values)), key


def test_more_items_than_the_gallery_has_are_always_enough():
    assert metrics.chance(np.eye(3, dtype=bool), ks=(10,))["i2t_recall@10"] == pytest.approx(100)


def test_labels_and_a_matrix_agree():
    labels, captions = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2, 2, 2])
    matrix = metrics.chance(labels[:, None] == captions[None])
    assert metrics.chance(metrics.LabelRelevance(labels, captions)) == pytest.approx(matrix)


def test_no_positive_at_all_is_said():
    with pytest.raises(ValueError, match="no positive"):
        metrics.chance(np.zeros((2, 3), bool))
