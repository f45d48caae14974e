"""What labels tell of answers, and what so few of them cannot tell."""

import numpy as np
import pytest

from studies.labelled_answers import share_apart


def test_how_often_chance_alone_is_far_off():
    # Of 20 even chances at least 13 or at most 7: 0.2632 by the binomial distribution.
    assert share_apart([np.full(20, 0.5)]) == pytest.approx(0.263, abs=0.01)
    assert share_apart([np.full(20, 0.5)] * 2) == pytest.approx(1 - (1 - 0.263) ** 2, abs=0.01)
    assert share_apart([np.full(1000, 0.5)]) == 0
    assert share_apart([]) == 0
