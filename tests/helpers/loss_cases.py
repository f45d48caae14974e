"""Every loss over a matrix, and how close it comes to a golden output."""

import numpy as np
import pytest

from zoo import losses

ALL = {
    "matching": losses.MatchingCrossentropy(),
    "matching_sum": losses.MatchingCrossentropy(reduction="sum"),
    "pseudo_positives": losses.MatchingCrossentropy(pseudo_positive_weight=0.1),
    "triplet_sum": losses.TripletRanking(),
    "triplet_hardest": losses.TripletRanking(mining="hardest", reduction="mean"),
    "triplet_semi_hard": losses.TripletRanking(mining="semi_hard", margin=0.1),
    "info_nce": losses.InfoNCE(),
    "smooth_ap": losses.SmoothAveragePrecision(0.1),
    "semantic_precision": losses.SemanticPrecision(0.1),
}
every_loss = pytest.mark.parametrize("loss", ALL.values(), ids=ALL)


def close(received, expected, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(received, expected, rtol=rtol, atol=atol)
