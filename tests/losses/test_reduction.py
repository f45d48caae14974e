import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from gradients import value_and_gradients
from loss_loops import random_problem
from zoo import losses
from zoo.losses.base import reduced

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
