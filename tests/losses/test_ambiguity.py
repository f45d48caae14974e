"""The ambiguity term: beside loops, where it is least, what it leaves out, and what it teaches."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gradients import value_and_gradients
from loss_cases import close
from oracles import random_gaussians
from zoo import losses, models

RNG = np.random.default_rng(7)
IMAGES, CAPTIONS = random_gaussians(RNG, 4, 5), random_gaussians(RNG, 6, 5)
MATCHES = np.zeros((4, 6), "float32")
MATCHES[[0, 0, 1, 2, 3, 3], np.arange(6)] = 1


def log_counts(means, others, is_own, temperature):
    unit = [side / np.linalg.norm(side, axis=1)[:, None] for side in (means, others)]
    counts = np.exp(unit[0] @ unit[1].T / temperature)
    return np.log(np.where(is_own, 0, counts).sum(axis=1))


def counted(temperature=0.08):
    means, alike = CAPTIONS["mean"], MATCHES.T @ MATCHES > 0
    return (
        log_counts(IMAGES["mean"], means, MATCHES > 0, temperature),
        log_counts(means, means, alike, temperature),
    )


@pytest.mark.parametrize("temperature", [0.08, 0.5])
def test_it_is_the_squared_error_of_log_counts(temperature):
    expected = 0.0
    for side, counts in zip((IMAGES, CAPTIONS), counted(temperature), strict=True):
        error = np.log(np.exp(side["log_variance"]).sum(axis=1)) - 0.3 * counts
        expected += np.mean((error - error.mean()) ** 2)
    term = losses.Ambiguity(temperature=temperature, slope=0.3)
    close(term(IMAGES, CAPTIONS, matches=MATCHES), expected, rtol=1e-4)
    soft = 0.4 * MATCHES
    close(term(IMAGES, CAPTIONS, matches=soft), expected, rtol=1e-4)


def test_it_is_zero_where_the_variance_is_a_power_of_the_count_at_any_level():
    sides = [
        {**side, "log_variance": (level + 0.1 * counts[:, None] + np.zeros(5)).astype("float32")}
        for side, counts, level in zip((IMAGES, CAPTIONS), counted(), (-3.0, 2.0), strict=True)
    ]
    close(losses.Ambiguity()(*sides, matches=MATCHES), 0, atol=1e-9)


def test_items_that_match_everything_are_left_out():
    """A batch of one pair, or of one class, says nothing, and gives finite gradients."""
    term = losses.Ambiguity()
    one = [{name: rows[:1] for name, rows in side.items()} for side in (IMAGES, CAPTIONS)]
    value, gradients = value_and_gradients(term_of(term, np.ones((1, 1), "float32")), *one)
    assert float(value) == 0
    assert all(np.isfinite(g).all() for g in keras.tree.flatten(gradients) if g is not None)
    matches = MATCHES.copy()
    matches[0] = 1  # the first image: all captions now are of one photo, and say nothing
    rest = [{name: rows[1:] for name, rows in side.items()} for side in (IMAGES, CAPTIONS)]
    images = log_counts(rest[0]["mean"], CAPTIONS["mean"], MATCHES[1:] > 0, 0.08)
    error = np.log(np.exp(rest[0]["log_variance"]).sum(axis=1)) - 0.1 * images
    close(term(IMAGES, CAPTIONS, matches=matches), np.var(error), rtol=1e-4)


def test_the_means_learn_nothing_by_it_and_it_compiles():
    term = term_of(losses.Ambiguity(), MATCHES)
    value, gradients = value_and_gradients(term, IMAGES, CAPTIONS)
    for side in gradients:
        assert side["mean"] is None or not np.any(side["mean"])
        assert np.abs(side["log_variance"]).max() > 0
    compiled = value_and_gradients(tf.function(term, jit_compile=True), IMAGES, CAPTIONS)
    close(compiled[0], value, rtol=1e-4)


def term_of(term, matches):
    return lambda images, captions: term(images, captions, matches=matches)


def test_pfe_learns_which_items_are_ambiguous():
    """Three quarters of the pairs lie close together, the others alone.

    Every pair is equally far from its partner: the likelihood has nothing to tell them apart by.
    """
    dim, count = 8, 1200
    rng = np.random.default_rng(0)
    is_common = np.arange(count) % 4 > 0
    truth = np.where(is_common[:, None], np.eye(dim)[0], 0.0)
    truth = truth + np.where(is_common[:, None], 0.15, 1.0) * rng.normal(size=(count, dim))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    sides = [truth + 0.05 * rng.normal(size=truth.shape) for _ in range(2)]
    names = ("images", "captions")
    rows = {name: side.astype("float32") for name, side in zip(names, sides, strict=True)}
    rows |= {name: np.arange(count) for name in ("image_labels", "caption_labels")}
    model = models.pfe(models.vector_points(dim), ambiguity_weight=100.0)
    model.compile(keras.optimizers.Adam(1e-2))
    data = tf.data.Dataset.from_tensor_slices(rows).batch(200)
    model.fit(data, epochs=10, verbose=0)
    for name, encoder in zip(names, (model.image_encoder, model.caption_encoder), strict=True):
        spread = np.exp(encoder(rows[name])["log_variance"]).sum(axis=1)
        assert np.median(spread[is_common]) > 1.15 * np.median(spread[~is_common])
