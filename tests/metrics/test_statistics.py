import math

import numpy as np
import pytest
from scipy.stats import norm

from studies.statistics import auroc
from zoo.metrics import Estimate, bootstrap, spearman, uncertainty_verdict, wilson_interval
from zoo.metrics.statistics import nan_mean, percentage


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
