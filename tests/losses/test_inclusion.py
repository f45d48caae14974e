"""Terms of pairs of Gaussians: inclusion, beside ProLIP's released code, and mutual likelihood."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.integrate import quad
from scipy.stats import norm

from loss_cases import close
from oracles import random_gaussians
from zoo import losses, similarities

RNG = np.random.default_rng(4)
INNER, OUTER = random_gaussians(RNG, 5, 3), random_gaussians(RNG, 5, 3)


def test_it_is_the_integral():
    def one(row, d):
        inner = norm(INNER["mean"][row, d], np.exp(0.5 * INNER["log_variance"][row, d]))
        outer = norm(OUTER["mean"][row, d], np.exp(0.5 * OUTER["log_variance"][row, d]))
        center, width = inner.mean(), 12 * inner.std()
        return np.log(
            quad(lambda z: inner.pdf(z) ** 2 * outer.pdf(z), center - width, center + width)[0]
        )

    expected = [np.mean([one(row, d) for d in range(3)]) for row in range(5)]
    close(losses.inclusion(INNER, OUTER), expected, rtol=1e-4)


def test_scaling_both_changes_no_comparison():
    """Which the released exponents of log σ² would: log s comes out of the difference."""

    def difference(scale):
        sides = [
            {
                "mean": scale * side["mean"],
                "log_variance": side["log_variance"] + 2 * np.log(scale).astype("float32"),
            }
            for side in (INNER, OUTER)
        ]
        return losses.inclusion(*sides) - losses.inclusion(*sides[::-1])

    close(difference(np.float32(7.0)), difference(np.float32(1.0)), rtol=1e-4)


def test_released_code(golden):
    """Its two tests have −2 and −1 before log σ², where ours has −1 and −½: that apart, the
    difference of both directions is ours, and so is the loss with its scale of 1000."""
    arrays = golden("prolip_loss")
    images = {"mean": arrays["image_mean"], "log_variance": arrays["image_logvar"]}
    captions = {"mean": arrays["caption_mean"], "log_variance": arrays["caption_logvar"]}
    ours = np.asarray(losses.inclusion(captions, images) - losses.inclusion(images, captions))
    extra = 0.5 * (images["log_variance"] - captions["log_variance"]).mean(axis=1)
    close(np.logaddexp(0, -1000 * (ours + extra)).mean(), arrays["inclusion_loss"], rtol=1e-3)
    term = losses.Inclusion(weight=1.0)
    close(term(captions, images), np.logaddexp(0, -1000 * ours).mean(), rtol=1e-3)


def test_a_wide_gaussian_includes_a_narrow_one_and_bad_pairs_are_refused():
    narrow = {"mean": np.zeros((2, 3), "float32"), "log_variance": np.full((2, 3), -2.0, "float32")}
    wide = {"mean": np.zeros((2, 3), "float32"), "log_variance": np.zeros((2, 3), "float32")}
    term = losses.Inclusion(scale=1.0)
    assert float(term(narrow, wide)) < float(term(wide, narrow))
    with pytest.raises(ValueError, match="must be pairs of one shape"):
        losses.inclusion(narrow, {key: value[:1] for key, value in wide.items()})
    with pytest.raises(ValueError, match="`scale` must be above 0"):
        losses.Inclusion(scale=0.0)


@pytest.mark.parametrize("log_variance", [-20.0, -44.0, -60.0, -88.0, 44.0, 80.0])
@pytest.mark.parametrize("distance", [0.0, 1e-3, 1.0])
def test_gradients_are_finite_at_every_variance(log_variance, distance):
    mean, log = tf.Variable([[distance] * 4]), tf.Variable([[log_variance] * 4])
    with tf.GradientTape() as tape:
        inner = {"mean": mean, "log_variance": log}
        outer = {"mean": tf.zeros_like(mean), "log_variance": log + 0.5}
        value = tf.reduce_sum(losses.inclusion(inner, outer))
    for gradient in tape.gradient(value, [mean, log]):
        assert np.isfinite(gradient).all()


def test_it_is_the_diagonal_of_the_expected_likelihood():
    matrix = np.asarray(similarities.log_expected_likelihood(INNER, OUTER))
    close(losses.mutual_likelihood(INNER, OUTER), np.diag(matrix) / 3, rtol=1e-5)
    close(losses.MutualLikelihood()(INNER, OUTER), -np.diag(matrix).mean() / 3, rtol=1e-5)


def test_it_is_greatest_where_variances_add_up_to_squared_distances():
    squared = (INNER["mean"] - OUTER["mean"]) ** 2
    halves = np.log(squared / 2)

    def with_variance(factor):
        sides = [
            {"mean": side["mean"], "log_variance": halves + np.float32(np.log(factor))}
            for side in (INNER, OUTER)
        ]
        return float(losses.MutualLikelihood()(*sides))

    best = with_variance(1.0)
    assert best < with_variance(0.9)
    assert best < with_variance(1.1)


def test_pairs_have_to_be_pairs():
    with pytest.raises(ValueError, match="pairs of one shape"):
        losses.MutualLikelihood()(INNER, {name: rows[:3] for name, rows in OUTER.items()})
    with pytest.raises(ValueError, match="Gaussian"):
        losses.MutualLikelihood()({"mean": INNER["mean"]}, OUTER)
