"""Every loss over a matrix: saving, gradients, edges, precision and reduction."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import loss_loops as loops
from gradients import value_and_gradients
from loss_loops import ALL, every_loss, random_problem
from zoo import losses
from zoo.losses.base import reduced

RNG = np.random.default_rng(11)


@every_loss
def test_config_and_saving(loss):
    config = keras.saving.serialize_keras_object(loss)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    problem = loops.random_problem(RNG)
    assert float(again(*problem)) == float(loss(*problem))


@every_loss
def test_gradient_is_that_of_finite_differences(loss):
    matches, logits = loops.random_problem(np.random.default_rng(2), 3, 4)
    _, (_, gradient) = value_and_gradients(loss, matches, logits)
    step = 1e-2
    for index in np.ndindex(logits.shape):
        moved = np.zeros_like(logits)
        moved[index] = step
        change = float(loss(matches, logits + moved)) - float(loss(matches, logits - moved))
        np.testing.assert_allclose(gradient[index], change / (2 * step), rtol=5e-2, atol=5e-3)


@every_loss
def test_nothing_is_scaled_by_replicas(loss, monkeypatch):
    """Keras' own losses divide by the replicas; a whole-batch scalar is scaled by its caller."""
    matches, logits = loops.random_problem(RNG)
    alone = loss(matches, logits), keras.losses.MeanSquaredError()(matches, logits)
    monkeypatch.setattr("keras.src.losses.loss.scale_loss_for_distribution", lambda x: x / 2)
    assert loss(matches, logits) == alone[0]
    assert keras.losses.MeanSquaredError()(matches, logits) == alone[1] / 2


def ranks_rows(name):
    return name.startswith(("triplet", "info_nce", "smooth_ap"))


@pytest.mark.parametrize("name", [name for name in ALL if ranks_rows(name)])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_are_all_alike_cost_nothing_or_little(name, label):
    matches, logits = np.full((3, 4), label, "float32"), loops.random_problem(RNG, 3, 4)[1]
    value, (_, gradient) = value_and_gradients(ALL[name], matches, logits)
    assert np.isfinite(gradient).all()
    if label == 0.0 or name.startswith("triplet"):
        assert value == 0.0
        assert not gradient.any()
    if name == "smooth_ap":
        np.testing.assert_allclose(value, 0.0, atol=1e-6)


def test_semantic_similarity_is_a_constant():
    semantics, logits = RNG.normal(size=(2, 4, 5)).astype("float32")
    _, (of_semantics, of_logits) = value_and_gradients(ALL["semantic_precision"], semantics, logits)
    assert of_semantics is None
    assert np.abs(of_logits).max() > 0


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        (np.eye(3, 4), r"`matches` and `logits` must have one shape.*\(3, 4\) and \(3, 3\)"),
        (np.full((3, 3), np.nan), "`matches` must be finite; received 9 NaN"),
        (2 * np.eye(3), r"`matches` must lie in \[0, 1\]; received values from 0.0 to 2.0"),
    ],
)
def test_bad_matches_are_refused(matches, message):
    for name, loss in ALL.items():
        if name != "semantic_precision":
            with pytest.raises(ValueError, match=message):
                loss(matches.astype("float32"), np.zeros((3, 3), "float32"))


MATCHES, LOGITS = random_problem(np.random.default_rng(0))


def squared_error(matches, logits):
    return ops.mean(ops.square(matches - logits), axis=-1)


def as_keras(loss):
    model = keras.Sequential([keras.Input((LOGITS.shape[1],)), keras.layers.Identity()])
    model.compile("sgd", loss=loss)
    return value_and_gradients(
        lambda logits: model.compute_loss(y=tf.constant(MATCHES), y_pred=logits), LOGITS
    )


@pytest.mark.parametrize(
    "loss",
    [
        "mse",
        squared_error,
        lambda matches, logits: ops.square(matches - logits),
        keras.losses.MeanSquaredError(),
        keras.losses.BinaryCrossentropy(from_logits=True),
        keras.losses.MeanSquaredError(reduction="sum"),
        keras.losses.MeanSquaredError,
    ],
)
def test_it_is_reduced_as_keras_reduces_it(loss):
    value, gradients = value_and_gradients(lambda logits: reduced(loss, MATCHES, logits), LOGITS)
    expected, of_keras = as_keras(loss)
    assert value.shape == ()
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    keras.tree.map_structure(
        lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=1e-6),
        gradients,
        of_keras,
    )


def test_a_loss_of_the_zoo_is_what_it_is():
    loss = losses.MatchingCrossentropy(reduction="sum")
    assert float(reduced(loss, MATCHES, LOGITS)) == float(loss(MATCHES, LOGITS))


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (keras.losses.MeanSquaredError(reduction=None), "one number; received values of the shape"),
        (["mse", "mae"], "must be one loss .* received 2"),
        ({"images": "mse"}, "must be one loss .* received 1"),
        ("mean_squares", "mean_squares"),
    ],
)
def test_what_gives_several_numbers_is_refused(loss, why):
    with pytest.raises(ValueError, match=why):
        reduced(loss, MATCHES, LOGITS)


OWN, RANDOM = loops.random_problem(RNG, 5, 10)
EDGES = {
    "huge": 1e4 * np.sign(RANDOM),
    "spread": np.linspace(-1e4, 1e4, RANDOM.size).reshape(RANDOM.shape),
    "far": RANDOM + 1e4,
    "tied": np.zeros_like(RANDOM),
    "tied_far": np.full_like(RANDOM, -1e4),
    "right_and_sure": np.where(OWN, 1e4, -1e4),
    "wrong_and_sure": np.where(OWN, -1e4, 1e4),
}


# All of one shape: Smooth-AP is compiled for each.
@every_loss
def test_finite_at_the_edges(loss):
    for name, logits in EDGES.items():
        value, (_, gradient) = value_and_gradients(loss, OWN, logits)
        assert value.dtype == "float32", name
        assert np.isfinite(value), name
        assert np.isfinite(gradient).all(), name


@every_loss
@pytest.mark.parametrize("kind", ["empty", "soft"])
def test_finite_with_labels_at_the_edges(loss, kind):
    matches, logits = loops.random_problem(RNG, *OWN.shape, kind)
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
    tied = value_and_gradients(ALL["matching_sum"], OWN, np.zeros_like(RANDOM))[1][1]
    np.testing.assert_allclose(tied, 0.5 - OWN)
    assert np.abs(gradient).max() < 1e-16


@every_loss
def test_mixed_precision_is_computed_in_float32(loss):
    expected = loss(OWN, RANDOM.astype("float16").astype("float32"))
    keras.config.set_dtype_policy("mixed_float16")
    again = type(loss).from_config(loss.get_config())
    value = again(OWN.astype("float16"), RANDOM.astype("float16"))
    assert value.dtype == "float32"
    np.testing.assert_allclose(value, expected, rtol=1e-6)


@every_loss
def test_xla_and_unknown_shapes_agree_with_eager(loss):
    matches, logits = map(tf.constant, loops.random_problem(RNG, *OWN.shape, "empty"))

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
