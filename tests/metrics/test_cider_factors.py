import numpy as np
import pytest

from zoo import metrics

WORDS = ["a", "a", "a", "bird", "bird", "red", "blue", "wing", "small", "with", "the", "branch"]
RNG = np.random.default_rng(0)
CAPTIONS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 12))) for _ in range(40)]
GROUP_OF = RNG.permutation(np.repeat(np.arange(8), [1, 2, 3, 4, 5, 6, 9, 10]))
GROUPS = [[CAPTIONS[i] for i in np.flatnonzero(own == GROUP_OF)] for own in range(8)]


@pytest.mark.parametrize("variant", ["cider", "cider_d", "tfidf"])
def test_they_are_cider(variant):
    factors = metrics.cider_factors(CAPTIONS, GROUP_OF, variant)
    assert factors.shape == (8, 40)
    whole = metrics.cider(GROUPS, CAPTIONS, variant)
    np.testing.assert_allclose(factors.scores(range(8), range(40)), whole, atol=2e-6)
    groups, captions = RNG.permutation(8)[:5], RNG.integers(0, 40, 13)
    np.testing.assert_allclose(
        factors.scores(groups, captions), whole[groups][:, captions], atol=2e-6
    )
    assert factors.scores([], captions).shape == (0, 13)
    assert factors.scores(groups, []).shape == (5, 0)


def test_without_a_penalty_a_group_has_one_row():
    assert metrics.cider_factors(CAPTIONS, GROUP_OF).references.shape[0] == 8
    assert metrics.cider_factors(CAPTIONS, GROUP_OF, "cider_d").references.shape[0] > 8
