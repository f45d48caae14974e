import itertools
import random

import keras
import numpy as np
import pytest
from keras import ops

from golden_weights import dense, set_local_attention, set_pie_net
from layer_checks import check_layer
from zoo.layers import Covariance, GaussianHead
from zoo.layers.masking import UnitLength, unit_length

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4, 7, 12)).astype("float32")
POOLED = RNG.normal(size=(4, 10)).astype("float32")
STATE = RNG.normal(size=(4, 16)).astype("float32")
MASK = np.arange(7) < np.array([[7], [3], [1], [5]])
SHAPES = {"mean": (4, 16), "log_variance": (4, 16)}


def official_image_head(g):
    features = g["feature_map"].reshape(3, 12, 49).transpose(0, 2, 1)
    pooled = features.mean(axis=1)
    head = GaussianHead(16, hidden_dim=6)
    head(features, pooled)
    head.mean_global.set_weights(dense(g, "fc"))
    set_pie_net(head.mean_local, g, "pie_net__")
    set_local_attention(head.variance_pooling, g, "uncertain_net__attention")
    # two biases are added up in the official code; ours has their sum
    local, pooled_part = dense(g, "uncertain_net__fc"), dense(g, "uncertain_net__fc2")
    head.variance_local.set_weights(local[:1])
    head.variance_global.set_weights(pooled_part[:1])
    head.covariance.set_weights([local[1] + pooled_part[1]])
    return head, features, pooled


def test_official_image_head(golden):
    g = golden("pcme_image_encoder_head")
    head, features, pooled = official_image_head(g)
    embedding = head(features, pooled)
    np.testing.assert_allclose(embedding["mean"], g["embedding"], atol=1e-5)
    np.testing.assert_allclose(embedding["log_variance"], g["logsigma"], atol=1e-5)
    _, attention = head.variance_pooling(features, return_attention=True)
    np.testing.assert_allclose(attention[:, 0], g["uncertainty_attention"][..., 0], atol=1e-6)


def test_gaussian_head_is_a_layer():
    inputs = {"features": FEATURES, "pooled": POOLED, "mask": MASK}
    check_layer(GaussianHead, {"dim": 16}, inputs, SHAPES)


def test_gaussian_head_of_two_states_is_a_layer():
    inputs = {"features": FEATURES, "pooled": STATE, "pooled_variance": STATE[::-1], "mask": MASK}
    config = {
        "dim": 16,
        "project_pooled": False,
        "covariance": "spherical_one",
        "variance_bounds": (0.1, 10.0),
        "log_variance_bias": -1.0,
    }
    check_layer(GaussianHead, config, inputs, SHAPES)


@pytest.mark.parametrize(
    ("mean_attention", "variance", "covariance"),
    list(
        itertools.product(
            [True, False],
            ["none", "attention", "squashed"],
            [None, "ellipsoidal", "spherical_mean", "spherical_one"],
        )
    ),
)
def test_ablations(mean_attention, variance, covariance):
    config = {
        "mean_attention": mean_attention,
        "variance_attention": variance != "none",
        "squash_variance": variance == "squashed",
        "covariance": covariance,
    }
    head = GaussianHead(16, **config)
    assert head.from_config(head.get_config()).get_config() == head.get_config()
    embedding = head(FEATURES, POOLED, mask=MASK)
    np.testing.assert_allclose(np.linalg.norm(embedding["mean"], axis=-1), 1, atol=1e-6)
    if covariance is None:
        assert set(embedding) == {"mean"}
        assert not any("variance" in w.path for w in head.weights)
        return
    spread = np.ptp(embedding["log_variance"], axis=-1)
    assert (spread > 1e-3).all() if covariance == "ellipsoidal" else (spread == 0).all()
    garbage = np.where(MASK[..., None], FEATURES, -1e3).astype("float32")
    again = head(garbage, POOLED, mask=MASK)
    for key, values in embedding.items():
        np.testing.assert_allclose(again[key], values, atol=1e-5)


def test_a_mean_that_is_not_normalised_has_the_direction_of_one_that_is():
    random.seed(0)
    unit = GaussianHead(16)(FEATURES, POOLED)["mean"]
    random.seed(0)
    head = GaussianHead(16, unit_mean=False)
    free = head(FEATURES, POOLED)["mean"]
    assert head.from_config(head.get_config()).unit_mean is False
    length = np.linalg.norm(free, axis=-1, keepdims=True)
    assert (np.abs(length - 1) > 1e-2).all()
    np.testing.assert_allclose(free / length, unit, atol=1e-6)


def test_mean_and_variance_share_nothing():
    head = GaussianHead(16)
    before = head(FEATURES, POOLED)
    for weight in head.weights:
        if "variance" in weight.path:
            weight.assign(weight + 1.0)
    after = head(FEATURES, POOLED)
    np.testing.assert_array_equal(before["mean"], after["mean"])
    assert (ops.abs(after["log_variance"] - before["log_variance"]) > 1e-3).numpy().all()


def test_without_branches_the_states_are_the_embedding():
    head = GaussianHead(
        16, project_pooled=False, mean_attention=False, variance_attention=False,
        log_variance_bias=-4.0,
    )  # fmt: skip
    embedding = head(FEATURES, STATE, 2 * STATE)
    np.testing.assert_allclose(embedding["log_variance"], 2 * STATE - 4.0, atol=1e-6)
    expected = STATE / np.linalg.norm(STATE, axis=-1, keepdims=True)
    np.testing.assert_allclose(embedding["mean"], expected, atol=1e-6)


def test_covariance_is_a_layer():
    config = {"kind": "spherical_mean", "bounds": (0.1, 10.0), "initial_log_variance": 0.5}
    check_layer(Covariance, config, {"features": STATE}, (4, 16))


def test_covariance_bounds_and_ties_variances():
    bounded = np.exp(Covariance(bounds=(0.1, 10.0))(100 * STATE))
    assert bounded.min() >= 0.1 - 1e-6
    assert bounded.max() <= 10 + 1e-5
    small = 0.01 * STATE
    np.testing.assert_allclose(Covariance(bounds=(0.1, 10.0))(small), small, atol=1e-5)
    tied = Covariance("spherical_mean", initial_log_variance=1.0)(STATE)
    expected = np.log(np.exp(STATE + 1.0).mean(axis=-1, keepdims=True))
    np.testing.assert_allclose(tied, np.broadcast_to(expected, STATE.shape), atol=1e-5)


def test_unit_length_of_nothing_has_a_finite_gradient():
    import tensorflow as tf

    check_layer(UnitLength, {}, {"features": STATE}, (4, 16))
    for scale in (1e-30, 1e-12, 1e-7, 1e18):
        found = np.linalg.norm(UnitLength()(scale * STATE.astype("float32")), axis=-1)
        np.testing.assert_allclose(found, 1.0, rtol=1e-5)
    assert not np.any(UnitLength()(np.zeros((1, 3), "float32")))
    zero = tf.Variable(tf.zeros((2, 3)))
    with tf.GradientTape() as tape:
        total = ops.sum(unit_length(zero))
    assert float(total) == 0
    assert np.isfinite(tape.gradient(total, zero)).all()
    assert (
        keras.backend.standardize_dtype(unit_length(np.ones((1, 2), "float16")).dtype) == "float32"
    )


def test_its_config_knows_numpys_numbers_and_a_policy():
    bias, policy = np.float32(-1), keras.DTypePolicy("mixed_bfloat16")
    head = GaussianHead(4, log_variance_bias=bias, dtype=policy)
    again = GaussianHead.from_config(head.get_config())
    assert again.get_config()["log_variance_bias"] == -1.0
    assert again.dtype_policy == policy
