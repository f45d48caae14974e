"""Log odds and Student's t against scipy.special."""

import warnings

import numpy as np
import pytest
from scipy import special

from zoo.confidence import odds


@pytest.mark.parametrize("name", ["expit", "log_expit"])
def test_probabilities_of_all_log_odds(name):
    values = np.concatenate([np.linspace(-750, 750, 3001), [-np.inf, 0.0, np.inf]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = getattr(odds, name)(values)
    np.testing.assert_allclose(found, getattr(special, name)(values), rtol=1e-12, atol=1e-300)


def test_log_odds_of_all_probabilities():
    values = np.concatenate([np.linspace(0, 1, 1001), [1e-300, 1e-17, 1 - 1e-15]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = odds.logit(values)
    np.testing.assert_allclose(found, special.logit(values), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 24, 169, 840, 25_010])
def test_student(freedom):
    for t in (-1e13, -40.0, -3.0, -0.1, 0.0, 0.01, 1.7, 12.0, 1e13):
        assert odds.student(t, freedom) == pytest.approx(special.stdtr(freedom, t), abs=1e-13)
    for share in (0.001, 0.2, 0.5, 0.6, 0.95, 0.975, 0.9999):
        expected = special.stdtrit(freedom, share)
        assert odds.student_quantile(share, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-9)
