import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.training.adamp import AdamP

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
