"""The same numbers as MAPIE, where MAPIE has the method."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from zoo.confidence import certified_threshold, missed_matches_threshold, smallest_k

methods = pytest.importorskip("mapie.risk_control.methods", reason="MAPIE is not installed")


def test_the_k_is_that_of_its_top_k_sets():
    """MAPIE's score `top_k` is the rank of the true label among a classifier's probabilities."""
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        """A classifier whose probabilities are its input."""

        def __sklearn_is_fitted__(self):
            return True

        classes_ = np.arange(12)

        def predict_proba(self, x):
            return x

        def predict(self, x):
            return x.argmax(axis=1)

    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.full(12, 0.5), size=215)
    truth = np.array([rng.choice(12, p=row) for row in scores])
    ranks = 1 + (scores > scores[np.arange(215), truth][:, None]).sum(axis=1)
    for error in (0.05, 0.1, 0.25):
        conformal = SplitConformalClassifier(
            Given(), confidence_level=1 - error, conformity_score="top_k", prefit=True
        )
        conformal.conformalize(scores[:200], truth[:200])
        _, sets = conformal.predict_set(scores[200:])
        k = smallest_k(ranks[:200], error)
        order = np.argsort(np.argsort(-scores[200:], axis=1), axis=1)
        np.testing.assert_array_equal(sets[:, :, 0], order < k)


def test_the_share_of_missed_matches_is_that_of_its_risk_control():
    """On the thresholds themselves as the grid; MAPIE asks for less than the error, we for ≤."""
    rng = np.random.default_rng(1)
    similarity = rng.normal(size=(150, 30))
    relevance = rng.random((150, 30)) < 0.2
    relevance[:, 0] = True
    levels = np.sort(similarity[relevance])
    missed = np.stack(
        [((similarity < level) & relevance).sum(1) / relevance.sum(1) for level in levels], axis=1
    )
    for error in (0.0613, 0.1013, 0.3013):
        _, bound = methods.get_r_hat_plus(missed, levels, "crc", None, None, None)
        expected = methods.find_best_predict_param(levels, bound, np.array([error]))
        assert missed_matches_threshold(similarity, relevance, error) == expected[0]


def test_the_certified_threshold_is_that_of_its_fixed_sequence():
    from mapie.risk_control.fwer_control import control_fwer

    rng = np.random.default_rng(2)
    certified = 0
    for _ in range(50):
        confidence = rng.random(300)
        correct = rng.random(300) < 0.5 + 0.5 * confidence
        candidates = np.linspace(0.9, 0.0, 19)
        answered = np.array([(confidence >= c).sum() for c in candidates])
        wrong = np.array([(~correct)[confidence >= c].sum() for c in candidates])
        p_values = binom.cdf(wrong, answered, 0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            passed = control_fwer(p_values, 0.1, "fixed_sequence")
        found = certified_threshold(confidence, correct, 0.2, 0.1, candidates)
        assert found == (candidates[passed[-1]] if len(passed) else None)
        certified += found is not None
    assert 5 < certified < 50
