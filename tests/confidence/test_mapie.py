"""The same k as MAPIE's top-k sets."""

import numpy as np
import pytest

from halo_search.confidence import smallest_k

pytest.importorskip("mapie", reason="MAPIE is not installed")


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
