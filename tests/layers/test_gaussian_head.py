"""Heads of means and variances, and the attention that pools local features."""

import itertools
import random

import keras
import numpy as np
import pytest
from keras import ops

from golden_weights import dense, set_local_attention, set_pie_net
from layer_checks import check_layer
from zoo.layers import (
    Covariance,
    GaussianHead,
    LocalAttention,
    PolysemousEmbedding,
    PooledGaussianHead,
)
from zoo.layers.masking import UnitLength, drop_positions, masked_softmax, unit_length

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


BATCH, POSITIONS, CHANNELS, DIM = 3, 5, 7, 4


def features(seed=0):
    shape = (BATCH, POSITIONS, CHANNELS)
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


PREFIX = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize(
    "pooling",  # `GeneralizedPooling` is a layer by itself: test_generalized_pooling.py
    ["mean", pytest.param("generalized", marks=pytest.mark.very_slow)],
)
def test_pooled_gaussian_head_is_a_layer(pooling):
    shape = (BATCH, DIM)
    check_layer(
        PooledGaussianHead,
        {"dim": DIM, "pooling": pooling, "seed": 1},
        {"features": features(), "variance_features": features(1), "mask": PREFIX},
        {"mean": shape, "log_variance": shape},
        mixed_atol=0.2,
    )


def test_mean_pooling_is_the_normalised_mean_of_the_linear_maps():
    head = PooledGaussianHead(DIM, pooling="mean")
    x, y = features(), features(1)
    embedding = head(x, y, mask=PREFIX)
    weights = PREFIX / PREFIX.sum(1, keepdims=True)
    kernel, bias = head.mean_map.get_weights()
    mean = np.einsum("bp,bpc->bc", weights, x) @ kernel + bias
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    log_variance = np.einsum("bp,bpc->bc", weights, y) @ head.variance_map.get_weights()[0]
    np.testing.assert_allclose(embedding["mean"], mean, atol=1e-5)
    np.testing.assert_allclose(embedding["log_variance"], log_variance - np.log(DIM) - 3, atol=1e-5)


def test_first_total_variance_is_small_whatever_the_dimension():
    for dim in (8, 512):
        head = PooledGaussianHead(dim)
        head(np.zeros((1, 2, 3), "float32"))
        bias = head.covariance.get_weights()[-1]
        np.testing.assert_allclose(np.exp(bias).sum(), np.exp(-3), rtol=1e-4)


@pytest.mark.parametrize("pooling", ["generalized", "mean"])
def test_padding_changes_no_pooled_head(pooling):
    head = PooledGaussianHead(DIM, pooling=pooling)
    x = features()
    other = np.where(PREFIX[..., None], x, 50.0).astype("float32")
    for name, value in head(x, mask=PREFIX).items():
        np.testing.assert_allclose(head(other, mask=PREFIX)[name], value, atol=1e-5)


def test_dropping_is_for_training_only_and_keeps_at_least_one_feature():
    head = PooledGaussianHead(DIM, pooling="mean", drop_rate=0.9, seed=0)
    x = features()
    still = np.array(head(x)["mean"])
    np.testing.assert_array_equal(still, head(x, training=False)["mean"])
    assert abs(np.array(head(x, training=True)["mean"]) - still).max() > 0.05
    seed = keras.random.SeedGenerator(0)
    for _ in range(20):
        kept = np.array(drop_positions((BATCH, POSITIONS), PREFIX, 0.9, seed))
        assert kept.any(axis=1).all()
        assert not (kept & ~PREFIX).any()


def test_the_rate_is_the_share_that_is_dropped():
    kept = np.array(drop_positions((500, 40), None, 0.2, keras.random.SeedGenerator(0)))
    assert abs(kept.mean() - 0.8) < 0.01


def test_a_varied_share_is_that_of_the_released_code():
    """Of 0.2: 0.2 u of an item's positions where u > 0.2, none elsewhere; 9.6 % on average."""
    seed = keras.random.SeedGenerator(0)
    kept = np.array(drop_positions((4000, 300), None, 0.2, seed, varied=True))
    lost = 1 - kept.mean(axis=1)
    assert abs(lost.mean() - 0.2 * (1 - 0.2**2) / 2) < 0.003
    assert abs((lost == 0).mean() - 0.2) < 0.03
    some = lost[lost > 0]
    assert some.min() < 0.05, "0.04 where u is just above 0.2, with noise"
    assert abs(np.quantile(some, 0.5) - 0.2 * 0.6) < 0.01
    head = PooledGaussianHead(DIM, drop_rate=0.2, drop_varies=True)
    assert PooledGaussianHead.from_config(head.get_config()).drop_varies is True


def test_the_last_position_that_counts_alone():
    """CLIP's end of text, `no_gpo` of PCME++'s released models/txt_encoder.py."""
    head, mask = PooledGaussianHead(DIM, pooling="last", normalize=False), np.ones((4, 6), bool)
    mask[1, 3:] = False
    given = np.random.default_rng(0).normal(size=(4, 6, 5)).astype("float32")
    found = head(given, mask=mask)["mean"]
    expected = head.mean_map(given[np.arange(4), mask.sum(1) - 1])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(head(given)["mean"][1], head.mean_map(given)[1, -1], atol=1e-5)


def test_points_have_no_variance():
    head = PooledGaussianHead(DIM, covariance=None)
    assert set(head(features())) == {"mean"}
    assert not any("variance" in weight.path for weight in head.weights)
    again = PooledGaussianHead.from_config(head.get_config())
    assert again.covariance is None


def test_local_attention_is_a_layer():
    inputs = {"features": FEATURES, "mask": MASK}
    check_layer(LocalAttention, {"num_embeddings": 3, "hidden_dim": 5}, inputs, (4, 3, 12))


def test_polysemous_embedding_is_a_layer():
    inputs = {"features": FEATURES, "pooled": STATE, "mask": MASK}
    check_layer(PolysemousEmbedding, {"dim": 16, "num_embeddings": 2}, inputs, (4, 2, 16))


def test_a_map_is_a_sequence_of_cells_and_the_local_part_is_told():
    layer = PolysemousEmbedding(16, 3)
    cells = RNG.normal(size=(4, 2, 3, 12)).astype("float32")
    parts = layer(cells, STATE, return_attention=True)
    assert parts["attention"].shape == (4, 3, 6)
    np.testing.assert_allclose(parts["elements"], layer(cells.reshape(4, 6, 12), STATE), atol=1e-6)
    whole = layer.normalize(STATE[:, None] + parts["slots"])
    np.testing.assert_allclose(parts["elements"], whole, atol=1e-6)


@pytest.mark.parametrize(("positions", "num_embeddings"), [(49, 2), (36, 4)])
def test_pie_net_at_the_sizes_of_its_recipes(positions, num_embeddings):
    """PVSE's equations on a 7 × 7 map and on 36 regions of 2,048 channels, D = 1,024, in float64;
    the official module's outputs below have twelve channels."""
    layer = PolysemousEmbedding(1024, num_embeddings)
    rng = np.random.default_rng(4)
    local = rng.normal(size=(2, positions, 2048)).astype("float32")
    pooled = rng.normal(size=(2, 1024)).astype("float32")
    elements = layer(local, pooled)
    x = np.float64(local)
    (first,), (second,) = layer.attention.hidden.get_weights(), layer.attention.score.get_weights()
    assert first.shape == (2048, 1024)
    shares = np.exp(np.tanh(x @ first) @ second)
    shares /= shares.sum(1, keepdims=True)
    kernel, bias = layer.branch.get_weights()
    branch = shares.transpose(0, 2, 1) @ x @ kernel + bias
    whole = pooled[:, None] + 1 / (1 + np.exp(-branch))
    whole = whole - whole.mean(-1, keepdims=True)
    whole /= np.sqrt((whole**2).mean(-1, keepdims=True) + layer.normalize.epsilon)
    np.testing.assert_allclose(elements, whole, atol=1e-4)


def test_official_pie_net(golden):
    g = golden("pvse_pienet")
    layer = PolysemousEmbedding(16, num_embeddings=3, hidden_dim=6)
    mask = ~g["pad_mask"]
    layer(g["local"], g["glob"], mask=mask)
    set_pie_net(layer, g)
    _, attention = layer.attention(g["local"], mask=mask, return_attention=True)
    np.testing.assert_allclose(ops.swapaxes(attention, 1, 2), g["attention"], atol=1e-6)
    np.testing.assert_allclose(layer(g["local"], g["glob"], mask=mask), g["out"], atol=1e-5)
    parts = layer(g["local"], g["glob"], mask=mask, return_attention=True)
    np.testing.assert_allclose(parts["slots"], g["residual"], atol=1e-5)


@pytest.mark.filterwarnings("ignore:You are using a softmax")  # of one position: weight one
@pytest.mark.parametrize("layer", [LocalAttention(2), PolysemousEmbedding(16, 2)])
def test_padding_changes_nothing(layer):
    pooled = () if isinstance(layer, LocalAttention) else (STATE,)
    padded = layer(FEATURES, *pooled, mask=MASK)
    garbage = np.where(MASK[..., None], FEATURES, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, *pooled, mask=MASK), padded, atol=1e-5)
    for i, length in enumerate(MASK.sum(1)):
        alone = layer(FEATURES[i : i + 1, :length], *(p[i : i + 1] for p in pooled))
        np.testing.assert_allclose(alone[0], padded[i], atol=1e-5)


def test_softmax_of_nothing_is_zero():
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], "float32")
    weights = masked_softmax(scores, np.array([[True, True, False], [False] * 3]))
    expected = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    np.testing.assert_allclose(weights, [[*expected, 0.0], [0.0, 0.0, 0.0]], rtol=1e-6)
