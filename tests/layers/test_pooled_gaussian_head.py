import keras
import numpy as np
import pytest

from layer_checks import check_layer
from zoo.layers import PooledGaussianHead
from zoo.layers.masking import drop_positions

BATCH, POSITIONS, CHANNELS, DIM = 3, 5, 7, 4


def features(seed=0):
    shape = (BATCH, POSITIONS, CHANNELS)
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize(
    "pooling",  # `GeneralizedPooling` is a layer by itself: test_generalized_pooling.py
    ["mean", pytest.param("generalized", marks=pytest.mark.very_slow)],
)
def test_is_a_layer(pooling):
    shape = (BATCH, DIM)
    check_layer(
        PooledGaussianHead,
        {"dim": DIM, "pooling": pooling, "seed": 1},
        {"features": features(), "variance_features": features(1), "mask": MASK},
        {"mean": shape, "log_variance": shape},
        mixed_atol=0.2,
    )


def test_mean_pooling_is_the_normalised_mean_of_the_linear_maps():
    head = PooledGaussianHead(DIM, pooling="mean")
    x, y = features(), features(1)
    embedding = head(x, y, mask=MASK)
    weights = MASK / MASK.sum(1, keepdims=True)
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
def test_padding_changes_nothing(pooling):
    head = PooledGaussianHead(DIM, pooling=pooling)
    x = features()
    other = np.where(MASK[..., None], x, 50.0).astype("float32")
    for name, value in head(x, mask=MASK).items():
        np.testing.assert_allclose(head(other, mask=MASK)[name], value, atol=1e-5)


def test_dropping_is_for_training_only_and_keeps_at_least_one_feature():
    head = PooledGaussianHead(DIM, pooling="mean", drop_rate=0.9, seed=0)
    x = features()
    still = np.array(head(x)["mean"])
    np.testing.assert_array_equal(still, head(x, training=False)["mean"])
    assert abs(np.array(head(x, training=True)["mean"]) - still).max() > 0.05
    seed = keras.random.SeedGenerator(0)
    for _ in range(20):
        kept = np.array(drop_positions((BATCH, POSITIONS), MASK, 0.9, seed))
        assert kept.any(axis=1).all()
        assert not (kept & ~MASK).any()


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
