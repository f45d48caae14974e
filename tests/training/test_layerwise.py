import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.training import WarmUpThenDrops
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


CASES = {"pcme": {}, "pcmepp": {}, "nesterov": {"nesterov": True}}
NAMES = ("matrix", "bias", "scalar", "conv")


def to_keras(name, array):
    """PyTorch's layout to Keras': output channels from first to last."""
    if name == "matrix":
        return array.swapaxes(-1, -2)
    if name == "conv":
        return np.moveaxis(array, (-3, -2, -1, -4), (-2, -4, -3, -1))
    return array


@pytest.mark.parametrize(
    ("case", "jit_compile"),
    [
        *((case, False) for case in CASES),
        ("nesterov", True),
        *(pytest.param(case, True, marks=pytest.mark.very_slow) for case in ("pcme", "pcmepp")),
    ],
)
def test_official_trajectories(golden, case, jit_compile):
    g = golden("adamp")
    optimizer = AdamP(float(g[f"{case}_lr"]), weight_decay=float(g[f"{case}_wd"]), **CASES[case])
    variables = [
        keras.Variable(to_keras(name, g[f"{case}_{name}_init"]), name=name) for name in NAMES
    ]
    optimizer.build(variables)
    apply = tf.function(lambda g: optimizer.apply(g, variables), jit_compile=jit_compile)
    for number in range(8):
        grads = [to_keras(name, g[f"{case}_{name}_grads"][number]) for name in NAMES]
        apply([tf.constant(gradient) for gradient in grads])
        for name, variable in zip(NAMES, variables, strict=True):
            expected = to_keras(name, g[f"{case}_{name}_traj"][number])
            np.testing.assert_allclose(variable, expected, atol=2e-6, err_msg=f"{name} {number}")


def attention_kernels():
    """Kernels of rank three that can hold the golden matrix, `(9, 6)` in Keras' order: queries,
    keys and values of two heads with three channels, and the output of three heads with three."""
    attention = keras.layers.MultiHeadAttention(2, 3)
    attention(keras.Input((4, 9)), keras.Input((5, 9)))
    gathering = keras.layers.MultiHeadAttention(3, 3, output_shape=6)
    gathering(keras.Input((4, 9)), keras.Input((5, 9)))
    kernels = {weight.path.split("/")[-2]: weight for weight in attention.weights[::2]}
    return {**kernels, "attention_output": gathering.weights[-2]}


@pytest.mark.parametrize("name", ["query", "key", "value", "attention_output"])
def test_kernels_that_keras_splits_by_head_move_as_the_same_matrix(golden, name):
    g, kernel = golden("adamp"), attention_kernels()[name]
    assert len(kernel.shape) == 3
    optimizer = AdamP(float(g["pcmepp_lr"]), weight_decay=float(g["pcmepp_wd"]))
    kernel.assign(to_keras("matrix", g["pcmepp_matrix_init"]).reshape(kernel.shape))
    for number in range(8):
        gradient = to_keras("matrix", g["pcmepp_matrix_grads"][number])
        optimizer.apply([tf.constant(gradient.reshape(kernel.shape))], [kernel])
        expected = to_keras("matrix", g["pcmepp_matrix_traj"][number])
        moved = np.reshape(kernel, expected.shape)
        np.testing.assert_allclose(moved, expected, atol=2e-6, err_msg=f"step {number}")


def test_nothing_radial_is_left_in_a_head():
    weight, gradient = np.random.default_rng(0).normal(size=(2, 9, 6))
    gradient -= weight * (gradient * weight).sum(0) / (weight**2).sum(0)
    kernel, dense = attention_kernels()["query"], keras.Variable(weight, name="kernel")
    kernel.assign(weight.reshape(kernel.shape))
    for variable in (kernel, dense):
        step = tf.constant(gradient.reshape(variable.shape), "float32")
        AdamP(0.1).apply([step], [variable])
    moved = np.reshape(kernel, weight.shape) - weight
    np.testing.assert_allclose(moved, np.asarray(dense) - weight, atol=1e-6)
    np.testing.assert_allclose((moved * weight).sum(0), 0, atol=1e-5)


def one_step(value, gradient, name="kernel", **config):
    variable = keras.Variable(np.asarray(value, "float32"), name=name)
    AdamP(0.1, **config).apply([np.asarray(gradient, "float32")], [variable])
    return np.asarray(variable)


def test_without_projection_it_is_adamw():
    rng = np.random.default_rng(0)
    ours = keras.Variable(rng.normal(size=(5, 3)), name="kernel")
    theirs = keras.Variable(ours.numpy(), name="kernel")
    adamp = AdamP(0.01, delta=0.0, weight_decay=0.1)
    adamw = keras.optimizers.AdamW(0.01, weight_decay=0.1, epsilon=1e-8)
    for _ in range(5):
        gradient = tf.constant(rng.normal(size=(5, 3)), "float32")
        adamp.apply([gradient], [ours])
        adamw.apply([gradient], [theirs])
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_channels_are_where_keras_has_them():
    """Columns of the first are orthogonal to their gradient, rows of it are not; and so on."""
    weight, gradient = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [-1.0, -1.0]])
    for name, projects in (("kernel", True), ("bias", False)):
        with_decay = one_step(weight, gradient, name, weight_decay=1.0, wd_ratio=0.0)
        without = one_step(weight, gradient, name)
        assert (with_decay == without).all() == projects, name
    # the layer as a whole is orthogonal too, so rows are told from columns by the step
    weight = np.array([[1.0, 3.0], [1.0, 1.0]])
    rows = np.array([[3.0, -1.0], [0.5, -0.5]])
    step = one_step(weight, rows, "embeddings") - weight
    np.testing.assert_allclose((step * weight).sum(axis=1), 0, atol=1e-6)
    step = one_step(weight.T, rows.T, "kernel") - weight.T
    np.testing.assert_allclose((step * weight.T).sum(axis=0), 0, atol=1e-6)


def test_exclusion_from_weight_decay_by_name():
    scale, kernel = keras.Variable([1.0], name="scale"), keras.Variable([1.0], name="kernel")
    optimizer = AdamP(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["scale"])
    optimizer.apply([tf.zeros(1), tf.zeros(1)], [scale, kernel])
    np.testing.assert_allclose(scale, [1.0])
    np.testing.assert_allclose(kernel, [0.95], rtol=1e-6)


def test_it_rises_stays_and_drops():
    schedule = WarmUpThenDrops(1.0, warm_up_steps=4, drop_steps=[6, 8], factor=0.1)
    rates = [float(schedule(step)) for step in range(10)]
    expected = [0.25, 0.5, 0.75, 1, 1, 1, 0.1, 0.1, 0.01, 0.01]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)
    assert float(WarmUpThenDrops(2.0)(0)) == 2.0


def test_it_is_saved_with_its_optimizer():
    optimizer = keras.optimizers.SGD(WarmUpThenDrops(1.0, 4, [6]))
    again = keras.optimizers.SGD.from_config(optimizer.get_config())
    for step, rate in ((1, 0.5), (7, 0.1)):
        again.iterations.assign(step)
        assert float(again.learning_rate) == pytest.approx(rate)
