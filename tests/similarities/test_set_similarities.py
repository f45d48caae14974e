"""Similarities of sets and points against loops, and what masks and permutations may not change."""

import numpy as np
import pytest

import oracles
from gradients import value_and_gradients
from zoo import similarities as S

RNG = np.random.default_rng(3)
FUNCTIONS = [
    (S.maximum_pair, oracles.maximum_pair),
    (S.chamfer, oracles.chamfer),
    (S.smooth_chamfer, lambda p, q: oracles.smooth_chamfer(p, q, 16.0)),
    (lambda i, c: S.smooth_chamfer(i, c, 60.0), lambda p, q: oracles.smooth_chamfer(p, q, 60.0)),
    (S.SetMatchProbability(3.0, -1.0), lambda p, q: oracles.set_match_probability(p, q, 3.0, -1.0)),
]
NAMES = ["maximum_pair", "chamfer", "smooth_chamfer", "smooth_chamfer_60", "set_match_probability"]


@pytest.mark.parametrize(("function", "oracle"), FUNCTIONS, ids=NAMES)
@pytest.mark.parametrize("masked", [False, True])
def test_against_loops(function, oracle, masked):
    images = oracles.random_sets(RNG, 4, 3, 5, masked)
    captions = oracles.random_sets(RNG, 6, 5, 5, masked)
    expected = oracles.pairs(oracle, images, captions)
    np.testing.assert_allclose(function(images, captions), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("function", "oracle"), FUNCTIONS, ids=NAMES)
def test_masked_elements_change_neither_value_nor_gradient(function, oracle):
    images = oracles.random_sets(RNG, 4, 3, 5, masked=True)
    captions = oracles.random_sets(RNG, 6, 4, 5, masked=True)
    value, gradients = value_and_gradients(function, images, captions)
    other = [{**s, "elements": s["elements"].copy()} for s in (images, captions)]
    for s in other:
        s["elements"][~s["mask"]] = 1e4 * RNG.normal(size=5)
    again, _ = value_and_gradients(function, *other)
    np.testing.assert_allclose(again, value, atol=1e-6)
    for s, gradient in zip((images, captions), gradients, strict=True):
        assert (gradient["elements"][~s["mask"]] == 0).all()
        assert (gradient["elements"][s["mask"]] != 0).any()


@pytest.mark.parametrize(("function", "oracle"), FUNCTIONS, ids=NAMES)
def test_a_set_without_elements_is_the_worst_match_and_finite(function, oracle):
    images = oracles.random_sets(RNG, 3, 2, 5)
    images["mask"] = np.array([[True, True], [False, False], [True, False]])
    captions = oracles.random_sets(RNG, 4, 3, 5)
    value, gradients = value_and_gradients(function, images, captions)
    assert np.isfinite(value).all()
    assert (value[1] <= value[[0, 2]].min(0)).all()
    assert all(np.isfinite(g["elements"]).all() for g in gradients)


@pytest.mark.parametrize("alpha", [0.5, 16.0, 39.0, 41.0, 1e4])
def test_smooth_chamfer_approaches_chamfer(alpha):
    images, captions = oracles.random_sets(RNG, 4, 3, 5), oracles.random_sets(RNG, 6, 4, 5)
    excess = np.asarray(S.smooth_chamfer(images, captions, alpha) - S.chamfer(images, captions))
    assert (excess >= -1e-6).all()
    assert (excess <= (np.log(3) + np.log(4)) / (2 * alpha) + 1e-6).all()


@pytest.mark.parametrize("alpha", [16.0, 39.9, 100.0])
def test_smooth_chamfer_of_opposites(alpha):
    """All cosines −1 or 1: the extremes that an exponential must survive."""
    ones = np.ones((1, 3, 4), "float32")
    for sign in (1.0, -1.0):
        value, gradients = value_and_gradients(
            lambda i, c: S.smooth_chamfer(i, c, alpha), ones, sign * ones
        )
        np.testing.assert_allclose(value, sign + np.log(3) / alpha, rtol=1e-5)
        assert all(np.isfinite(g).all() for g in gradients)


def test_cosine_against_numpy():
    images, captions = RNG.normal(size=(4, 5)), RNG.normal(size=(6, 5))
    expected = (images / np.linalg.norm(images, axis=1)[:, None]) @ (
        captions / np.linalg.norm(captions, axis=1)[:, None]
    ).T
    np.testing.assert_allclose(S.cosine(images, captions), expected, atol=1e-6)
    np.testing.assert_allclose(S.Cosine(scale=3.0)(images, captions), 3 * expected, atol=1e-5)


def test_learned_cosine_scale():
    import keras

    images, captions = RNG.normal(size=(4, 5)), RNG.normal(size=(6, 5))
    layer = S.Cosine(scale=10.0, learn_scale=True, max_scale=20.0)
    np.testing.assert_allclose(layer(images, captions), 10 * S.cosine(images, captions), rtol=1e-5)
    value, _, (by_log_scale,) = value_and_gradients(
        layer, images, captions, trainable=[layer.log_scale]
    )
    np.testing.assert_allclose(by_log_scale, value.sum(), rtol=1e-4)
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build(layer.trainable_variables)
    optimizer.apply([np.float32(-100.0)])
    np.testing.assert_allclose(layer.scale, 20.0, rtol=1e-6)
    assert not S.Cosine(scale=10.0).trainable_variables
