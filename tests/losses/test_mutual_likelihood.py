"""The mutual likelihood of pairs: beside the matrix of all, at its optimum, and bad pairs."""

import numpy as np
import pytest

from loss_cases import close
from oracles import random_gaussians
from zoo import losses, similarities

RNG = np.random.default_rng(5)
IMAGES, CAPTIONS = random_gaussians(RNG, 6, 4), random_gaussians(RNG, 6, 4)


def test_it_is_the_diagonal_of_the_expected_likelihood():
    matrix = np.asarray(similarities.log_expected_likelihood(IMAGES, CAPTIONS))
    close(losses.mutual_likelihood(IMAGES, CAPTIONS), np.diag(matrix) / 4, rtol=1e-5)
    close(losses.MutualLikelihood()(IMAGES, CAPTIONS), -np.diag(matrix).mean() / 4, rtol=1e-5)


def test_it_is_greatest_where_variances_add_up_to_squared_distances():
    squared = (IMAGES["mean"] - CAPTIONS["mean"]) ** 2
    halves = np.log(squared / 2)

    def with_variance(factor):
        sides = [
            {"mean": side["mean"], "log_variance": halves + np.float32(np.log(factor))}
            for side in (IMAGES, CAPTIONS)
        ]
        return float(losses.MutualLikelihood()(*sides))

    best = with_variance(1.0)
    assert best < with_variance(0.9)
    assert best < with_variance(1.1)


def test_pairs_have_to_be_pairs():
    with pytest.raises(ValueError, match="pairs of one shape"):
        losses.MutualLikelihood()(IMAGES, {name: rows[:3] for name, rows in CAPTIONS.items()})
    with pytest.raises(ValueError, match="Gaussian"):
        losses.MutualLikelihood()({"mean": IMAGES["mean"]}, CAPTIONS)
