"""Every loss compiles by XLA, and is then what it was."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gradients import value_and_gradients
from loss_loops import random_problem
from oracles import random_gaussians, random_sets
from zoo import losses
from zoo.losses.base import Auxiliary, MatrixLoss

RNG = np.random.default_rng(0)
MATCHES, LOGITS = random_problem(RNG)
MATRIX_LOSSES = {
    "matching": losses.MatchingCrossentropy(reduction="sum"),
    "pseudo-positives": losses.MatchingCrossentropy(0.1),
    "all hinges": losses.TripletRanking(mining="sum"),
    "hardest": losses.TripletRanking(mining="hardest"),
    "semi-hard": losses.TripletRanking(mining="semi_hard"),
    "InfoNCE": losses.InfoNCE(),
    "ASP": losses.SemanticPrecision(0.1),
    "Smooth-AP": losses.SmoothAveragePrecision(0.1),
}
GAUSSIANS = random_gaussians(RNG, 4, 6), random_gaussians(RNG, 5, 6)
SETS = random_sets(RNG, 4, 3, 6), random_sets(RNG, 5, 3, 6)
TERMS = {
    "KL": (losses.KLRegularizer(), GAUSSIANS),
    "uniformity": (losses.Uniformity(), GAUSSIANS),
    "MMD": (losses.MaximumMeanDiscrepancy(), SETS),
    "Laplacian MMD": (losses.MaximumMeanDiscrepancy(squared=False), SETS),
    "diversity": (losses.Diversity(), SETS),
    "mutual likelihood": (losses.MutualLikelihood(), (GAUSSIANS[0], random_gaussians(RNG, 4, 6))),
    "inclusion": (losses.Inclusion(scale=1.0), (GAUSSIANS[0], random_gaussians(RNG, 4, 6))),
    "Gram diversity": (losses.OrthogonalDiversity(), SETS),
}


def assert_equal_compiled(function, *arguments):
    compiled = tf.function(function, jit_compile=True)
    expected, found = (value_and_gradients(f, *arguments) for f in (function, compiled))
    keras.tree.map_structure(
        lambda a, b: a is None or np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4),
        found,
        expected,
    )


# test_loss_stability.py compiles the step of each of them, value and gradient, as well.
@pytest.mark.very_slow
@pytest.mark.parametrize("name", MATRIX_LOSSES)
def test_matrix_losses(name):
    loss = MATRIX_LOSSES[name]
    assert_equal_compiled(lambda logits: loss(MATCHES, logits), LOGITS)


# test_auxiliary_terms.py compiles the step of the others.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in ("mutual likelihood", "inclusion") else pytest.mark.very_slow
        )
        for name in TERMS
    ],
)
def test_terms(name):
    term, embeddings = TERMS[name]
    assert_equal_compiled(term, *embeddings)


def test_no_loss_is_left_out():
    public = {c for c in vars(losses).values() if isinstance(c, type)}
    tested = {type(loss) for loss in MATRIX_LOSSES.values()} | {type(t) for t, _ in TERMS.values()}
    elsewhere = {
        losses.Captioning,
        losses.AuxiliaryRanking,
    }  # `tests/training/test_compiled_steps.py`
    elsewhere |= {losses.Ambiguity}  # it reads matches: `tests/losses/test_ambiguity.py`
    bases = {MatrixLoss, Auxiliary}
    assert {c for c in public if issubclass(c, tuple(bases))} - bases == tested | elsewhere
