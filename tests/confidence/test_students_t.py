"""Student's quantiles and the logistic against SciPy."""

import numpy as np
import pytest
from scipy import special

from halo_search.confidence.sigmoid import expit, log_expit, logit
from halo_search.confidence.students_t import MANY, students_quantile


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.95, 0.995])
def test_quantiles_are_scipys(share):
    for freedom in (1, 2, MANY - 1, MANY, 100, 5000):
        expected = special.stdtrit(freedom, share)
        assert students_quantile(share, freedom) == pytest.approx(expected, rel=3e-7, abs=1e-12)


def test_the_logistic_is_scipys():
    odds = np.concatenate([np.linspace(-700, 700, 1401), [0.0, 1e-9, -1e-9]])
    np.testing.assert_allclose(expit(odds), special.expit(odds), rtol=1e-13)
    np.testing.assert_allclose(log_expit(odds), special.log_expit(odds), rtol=1e-13)
    probability = np.concatenate([[0.0, 1.0], np.linspace(1e-12, 1 - 1e-12, 1001)])
    np.testing.assert_allclose(logit(probability), special.logit(probability), rtol=1e-9)
    np.testing.assert_array_equal(expit(np.array([0.0, -np.inf, np.inf])), [0.5, 0.0, 1.0])
