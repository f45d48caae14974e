import keras
import numpy as np
import pytest
import tensorflow as tf

from golden_weights import dense, gru, norm
from layer_checks import check_layer
from zoo.layers import GeneralizedPooling
from zoo.layers.masking import unit_length
from zoo.layers.transformer import map_encoding, sequence_encoding, sinusoidal_encoding

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4, 6, 5)).astype("float32")
LENGTHS = np.array([6, 3, 1, 4])
MASK = np.arange(6) < LENGTHS[:, None]


def set_official_weights(layer, g, prefix=""):
    reader = [*gru(g, f"{prefix}gru"), *gru(g, f"{prefix}gru", reverse=True)]
    layer.reader.set_weights(reader)
    layer.score.set_weights(dense(g, f"{prefix}linear"))


def test_generalized_pooling_is_a_layer():
    inputs = {"features": FEATURES, "mask": MASK}
    config = {"position_dim": 8, "hidden_dim": 4}
    # half precision moves the scores, which the temperature multiplies by ten
    check_layer(GeneralizedPooling, config, inputs, (4, 5), mixed_atol=0.3)


def test_official_gpo_with_gradients(golden):
    g = golden("gpo")
    features = tf.constant(g["features"])
    mask = np.arange(9) < g["lengths"][:, None]
    layer = GeneralizedPooling()
    layer(features, mask=mask)
    set_official_weights(layer, g)
    with tf.GradientTape() as tape:
        tape.watch(features)
        pooled = layer(features, mask=mask)
        total = tf.reduce_sum(pooled * tf.range(1.0, 13.0))
    np.testing.assert_allclose(pooled, g["pooled"], atol=1e-5)
    weights = layer._weights(np.arange(9)[None], mask)
    np.testing.assert_allclose(weights, g["pool_weights"][..., 0], atol=1e-5)
    np.testing.assert_allclose(tape.gradient(total, features), g["grad_features"], atol=1e-4)
    encoding = sinusoidal_encoding(np.arange(9), 32)
    np.testing.assert_allclose(encoding, g["positional_encoding"], atol=1e-6)


def test_official_vse_infinity_image_encoder(golden):
    """Linear plus two-layer MLP, GPO, unit length: what the builder puts together."""
    g = golden("vse_infty_image_aggr")
    regions = g["regions"]
    mask = np.arange(regions.shape[1]) < g["lengths"][:, None]
    linear = keras.layers.Dense(12)
    first, second = keras.layers.Dense(6), keras.layers.Dense(12)
    normalize = keras.layers.BatchNormalization(epsilon=1e-5)
    pooling = GeneralizedPooling()

    def encode():
        hidden = keras.ops.relu(normalize(first(regions)))
        return unit_length(pooling(linear(regions) + second(hidden), mask=mask))

    encode()
    linear.set_weights(dense(g, "fc"))
    first.set_weights(dense(g, "mlp__layers__0"))
    second.set_weights(dense(g, "mlp__layers__1"))
    normalize.set_weights(norm(g, "mlp__bns__0"))  # the second one is there but not called
    set_official_weights(pooling, g, "gpool__")
    np.testing.assert_allclose(encode(), g["out"], atol=1e-5)


@pytest.mark.filterwarnings("ignore:You are using a softmax")  # of one position: weight one
def test_padding_and_order_change_nothing():
    layer = GeneralizedPooling()
    pooled = layer(FEATURES, mask=MASK)
    garbage = np.where(MASK[..., None], FEATURES, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, mask=MASK), pooled, atol=1e-6)
    order = RNG.permutation(6)
    np.testing.assert_allclose(layer(FEATURES[:, order], mask=MASK[:, order]), pooled, atol=1e-6)
    for i, length in enumerate(LENGTHS):
        np.testing.assert_allclose(layer(FEATURES[i : i + 1, :length])[0], pooled[i], atol=1e-6)


def test_zero_scores_are_the_mean_and_nothing_is_zero():
    layer = GeneralizedPooling()
    layer.build(FEATURES.shape)
    layer.score.set_weights([np.zeros((32, 1))])
    expected = [FEATURES[i, :length].mean(axis=0) for i, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(layer(FEATURES, mask=MASK), expected, atol=1e-6)
    np.testing.assert_array_equal(layer(FEATURES, mask=np.zeros_like(MASK)), np.zeros((4, 5)))


def test_encodings_of_maps_and_sequences():
    encoding = np.asarray(map_encoding(2, 3, 8)).reshape(2, 3, 8)
    np.testing.assert_array_equal(encoding[0, :, :4], np.broadcast_to(encoding[0, 0, :4], (3, 4)))
    np.testing.assert_allclose(encoding[:, 1, 4:], np.asarray(sequence_encoding(3, 4))[[0, 0], 1])
    masked = sequence_encoding(6, 4, MASK)
    np.testing.assert_allclose(masked[1, :3], sequence_encoding(3, 4)[0], atol=1e-6)
    with pytest.raises(ValueError, match="`dim` must be even"):
        sinusoidal_encoding(np.arange(3), 5)
    with pytest.raises(ValueError, match="multiple of 4"):
        map_encoding(2, 2, 6)
