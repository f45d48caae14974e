import random

import keras
import numpy as np
import pytest

from zoo.training.adamp import AdamP
from zoo.training.layerwise import LayerwiseAdamP, LayerwiseAdamW, LayerwiseRates, rates_by_depth

X = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(32, 2)).astype("float32")


class LayerwiseSGD(LayerwiseRates, keras.optimizers.SGD):
    pass


def make_model():
    random.seed(3)
    inputs = keras.Input((3,))
    low = keras.layers.Dense(4, activation="tanh", name="low")(inputs)
    return keras.Model(inputs, keras.layers.Dense(2, name="high")(low))


def of_low(rate):
    return dict.fromkeys(("low/kernel", "low/bias"), rate)


def train(optimizer, epochs=2):
    model = make_model()
    model.compile(optimizer, "mse", run_eagerly=True)
    model.fit(X, Y, batch_size=8, epochs=epochs, shuffle=False, verbose=0)
    return model


@pytest.mark.parametrize(
    ("layerwise", "plain", "arguments"),
    [
        (LayerwiseAdamW, keras.optimizers.AdamW, {"weight_decay": 0.1}),
        (LayerwiseAdamP, AdamP, {"weight_decay": 0.1, "delta": 1.0}),
    ],
)
def test_a_factor_is_a_learning_rate_of_its_own(layerwise, plain, arguments):
    """Against Keras' MultiOptimizer, one optimizer a layer, each with its own rate."""
    groups = keras.optimizers.OptimizerMap(plain(0.02, **arguments))
    groups["low/.*"] = plain(0.02 * 0.3, **arguments)
    expected = train(keras.optimizers.MultiOptimizer(groups))
    ours = train(layerwise(0.02, rates=of_low(0.3), **arguments))
    for a, b in zip(ours.weights, expected.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_the_global_norm_is_that_of_all_variables():
    """Both groups share one clipping factor, which per-group optimizers would not."""
    start, gradients = make_model(), [np.full((2,), 3.0, "float32"), np.full((2,), 4.0, "float32")]
    variables = [keras.Variable(np.zeros(2), name=name) for name in ("a", "b")]
    optimizer = LayerwiseSGD(1.0, rates={"a": 0.5}, global_clipnorm=1.0)
    optimizer.apply(gradients, variables)
    norm = np.sqrt(2 * 9 + 2 * 16)
    np.testing.assert_allclose(variables[0], np.full(2, -0.5 * 3 / norm), rtol=1e-6)
    np.testing.assert_allclose(variables[1], np.full(2, -4 / norm), rtol=1e-6)
    assert start.built


def test_factor_zero_freezes_and_weight_decay_exclusions_hold():
    optimizer = LayerwiseAdamW(0.02, weight_decay=0.5, rates=of_low(0.0))
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    model = make_model()
    model.layers[2].bias.assign([5.0, 5.0])
    before = [np.array(w) for w in model.weights]
    optimizer.build(model.trainable_variables)
    optimizer.apply([np.zeros(v.shape, "float32") for v in model.trainable_variables])
    np.testing.assert_array_equal(model.weights[0], before[0])
    np.testing.assert_allclose(model.weights[2], before[2] * (1 - 0.02 * 0.5), rtol=1e-6)
    np.testing.assert_array_equal(model.weights[3], before[3])


def test_it_saves_loads_and_wraps_in_a_loss_scale(tmp_path):
    model = train(LayerwiseAdamW(0.02, weight_decay=0.1, rates=of_low(0.3)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.optimizer, LayerwiseAdamW)
    assert loaded.optimizer.rates == [0.3, 0.3, 1.0, 1.0]
    for copy in (model, loaded):
        copy.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    for a, b in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    scaled = train(keras.optimizers.LossScaleOptimizer(LayerwiseAdamW(0.02, rates=of_low(0))))
    np.testing.assert_array_equal(scaled.weights[0], make_model().weights[0])


def test_rates_by_depth():
    model = make_model()
    model.layers[1].bias.trainable = False
    rates = rates_by_depth(model.layers[1:], decay=0.7, rate=0.1)
    assert rates == pytest.approx({"low/kernel": 0.07, "high/kernel": 0.1, "high/bias": 0.1})
    whole = rates_by_depth([model.layers[1].kernel, [model.layers[2]]], decay=0.5)
    assert whole == {"low/kernel": 0.5, "high/kernel": 1.0, "high/bias": 1.0}
    with pytest.raises(ValueError, match="overlap"):
        rates_by_depth([model.layers[1], model])
    with pytest.raises(ValueError, match="decay"):
        rates_by_depth(model.layers, decay=0.0)


def test_rates_of_no_variable_are_named():
    optimizer = LayerwiseSGD(0.1, rates={**of_low(0.3), "lower/kernel": 0.3})
    with pytest.raises(ValueError, match=r"must name variables of the model; \['lower/kernel'\]"):
        optimizer.build(make_model().trainable_variables)


def test_a_block_may_be_a_list_or_a_tuple():
    low, high = make_model().layers[1:]
    for kind in (list, tuple):
        assert rates_by_depth([kind([low, high])], 0.5, 2.0) == dict.fromkeys(
            ["low/kernel", "low/bias", "high/kernel", "high/bias"], 2.0
        )
