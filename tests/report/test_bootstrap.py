import math

import numpy as np
import pytest
from scipy.stats import norm

from zoo.report.bootstrap import Estimate, bootstrap, mean, percent


def test_the_interval_of_a_mean_is_the_normal_one():
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    found = bootstrap(np.mean, values, resamples=4000)
    half = norm.ppf(0.975) * values.std() / 20
    assert found.value == values.mean()
    assert found.n == 400
    np.testing.assert_allclose(
        [found.low, found.high], values.mean() + np.array([-half, half]), atol=0.02
    )


def test_draws_follow_from_the_seed_and_go_by_query():
    first, second = np.random.default_rng(0).normal(size=(2, 50))
    both = bootstrap(lambda a, b: np.mean(a - b), first, second, resamples=30, seed=3)
    rng = np.random.default_rng(3)
    drawn = [np.mean((first - second)[rng.integers(0, 50, 50)]) for _ in range(30)]
    np.testing.assert_allclose([both.low, both.high], np.quantile(drawn, [0.025, 0.975]))
    assert both != bootstrap(lambda a, b: np.mean(a - b), first, second, resamples=30, seed=4)


def test_what_is_undefined_is_said_and_left_out():
    assert bootstrap(lambda v: math.nan, [1.0]).text() == "undefined"
    known = bootstrap(mean, [np.nan, 2.0, 4.0], resamples=100)
    assert known.value == 3.0
    assert 2.0 <= known.low <= known.high <= 4.0
    assert bootstrap(percent, [True, False]).value == 50.0
    assert Estimate(-1.25, -2.0, 0.5, 9).text("+.2f") == "−1.25 [−2.00, +0.50]"


def test_columns_must_fit():
    with pytest.raises(ValueError, match="one length"):
        bootstrap(np.mean, [1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least 1"):
        bootstrap(np.mean, [])
    with pytest.raises(ValueError, match="level"):
        bootstrap(np.mean, [1.0], level=1.0)
