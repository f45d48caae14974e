"""Embeddings that are odd: taken as what they plainly are, or refused or told in a sentence."""

import warnings

import numpy as np
import pytest

from zoo.confidence import calibrate_on
from zoo.search import Index


def test_a_set_in_place_of_points_is_named_with_its_shape():
    points = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match=r"must be a point or .*; received a set of shape \(30, 1"):
        Index.build(points[:, None], "cosine")
    index = Index.build(points, "cosine")
    with pytest.raises(ValueError, match=r"must be a point; received a set of shape \(30, 1, 4\)"):
        index.search(points[:, None], 1)
    with pytest.raises(ValueError, match=r"`own` must be a point; received a set"):
        calibrate_on(index, points, points[:, None])
    gaussians = {"mean": points, "log_variance": points}
    with pytest.raises(ValueError, match=r"`own` must be a Gaussian; received a point"):
        calibrate_on(Index.build(gaussians, "csd"), gaussians, points)


def test_vectors_of_zeros_are_told():
    points = np.random.default_rng(0).normal(size=(30, 4))
    points[7] = 0
    with pytest.warns(UserWarning, match="1 of 30 vectors are all zeros, the first in row 7"):
        index = Index.build(points, "cosine")
    with pytest.warns(UserWarning, match="`queries`: 1 of 1 vectors are all zeros"):
        assert (index.search(points[7:8], 30)[0] == 0).all()
    with pytest.warns(UserWarning, match="1 of 60 vectors are all zeros"):
        Index.build({"elements": np.stack([points, points + 1], axis=1)}, "smooth_chamfer")
    with warnings.catch_warnings(action="error"):
        Index.build(points, "euclidean").search(points, 1)


def test_pairs_that_do_not_belong_together_are_told():
    points = np.random.default_rng(0).normal(size=(300, 64))
    index = Index.build(points[:100], "cosine")
    with pytest.raises(ValueError, match="no better than chance: 0 of 200 probes"):
        calibrate_on(index, points[100:], np.roll(points[100:], 1, axis=0))
