"""Finite values and gradients at the edges, half precision, and XLA."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import loss_loops as loops
from gradients import value_and_gradients
from loss_cases import ALL, every_loss

RNG = np.random.default_rng(13)
MATCHES, RANDOM = loops.random_problem(RNG, 5, 10)
LOGITS = {
    "huge": 1e4 * np.sign(RANDOM),
    "spread": np.linspace(-1e4, 1e4, RANDOM.size).reshape(RANDOM.shape),
    "far": RANDOM + 1e4,
    "tied": np.zeros_like(RANDOM),
    "tied_far": np.full_like(RANDOM, -1e4),
    "right_and_sure": np.where(MATCHES, 1e4, -1e4),
    "wrong_and_sure": np.where(MATCHES, -1e4, 1e4),
}


# All of one shape: Smooth-AP is compiled for each.
@every_loss
def test_finite_at_the_edges(loss):
    for name, logits in LOGITS.items():
        value, (_, gradient) = value_and_gradients(loss, MATCHES, logits)
        assert value.dtype == "float32", name
        assert np.isfinite(value), name
        assert np.isfinite(gradient).all(), name


@every_loss
@pytest.mark.parametrize("kind", ["empty", "soft"])
def test_finite_with_labels_at_the_edges(loss, kind):
    matches, logits = loops.random_problem(RNG, *MATCHES.shape, kind)
    value, (_, gradient) = value_and_gradients(loss, matches, logits)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@every_loss
@pytest.mark.usefixtures("one_eagerly")
def test_finite_for_the_smallest_batches(loss):
    for shape in ((1, 1), (1, 4), (4, 1)):
        matches, logits = np.ones(shape, "float32"), RNG.normal(size=shape).astype("float32")
        value, (_, gradient) = value_and_gradients(loss, matches, logits)
        assert np.isfinite(value), shape
        assert np.isfinite(gradient).all(), shape


def test_matching_is_exact_in_both_tails():
    logits = np.array([[40.0, -40.0]], "float32")
    value, (_, gradient) = value_and_gradients(
        ALL["matching_sum"], np.array([[1.0, 0.0]], "float32"), logits
    )
    np.testing.assert_allclose(value, 2 * np.exp(-40.0), rtol=1e-5)
    tied = value_and_gradients(ALL["matching_sum"], MATCHES, np.zeros_like(RANDOM))[1][1]
    np.testing.assert_allclose(tied, 0.5 - MATCHES)
    assert np.abs(gradient).max() < 1e-16


@every_loss
def test_mixed_precision_is_computed_in_float32(loss):
    expected = loss(MATCHES, RANDOM.astype("float16").astype("float32"))
    keras.config.set_dtype_policy("mixed_float16")
    again = type(loss).from_config(loss.get_config())
    value = again(MATCHES.astype("float16"), RANDOM.astype("float16"))
    assert value.dtype == "float32"
    np.testing.assert_allclose(value, expected, rtol=1e-6)


@every_loss
def test_xla_and_unknown_shapes_agree_with_eager(loss):
    matches, logits = map(tf.constant, loops.random_problem(RNG, *MATCHES.shape, "empty"))

    def step(matches, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(matches, logits)
        return value, tape.gradient(value, logits)

    expected = step(matches, logits)
    unknown = [tf.TensorSpec((None, None))] * 2
    received = tf.function(step, jit_compile=True, input_signature=unknown)(matches, logits)
    np.testing.assert_allclose(received[0], expected[0], rtol=1e-4)
    np.testing.assert_allclose(received[1], expected[1], rtol=1e-4, atol=1e-6)
