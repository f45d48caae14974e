import random

import keras
import numpy as np
import pytest

from zoo.training.averaging import StochasticWeightAveraging
from zoo.training.resume import Resume

X = np.random.default_rng(0).normal(2.0, 3.0, size=(24, 3)).astype("float32")
Y = X[:, :2] * 2.0 - 1.0


def make_model(batch_norm=False):
    random.seed(1)
    layers = [keras.Input((3,)), keras.layers.Dense(4)]
    layers += [keras.layers.BatchNormalization()] if batch_norm else []
    model = keras.Sequential([*layers, keras.layers.Dense(2)])
    model.compile(keras.optimizers.Adam(0.05), "mse", run_eagerly=True)
    return model


class Snapshots(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.weights = []

    def on_epoch_end(self, epoch, logs=None):
        self.weights.append([v.numpy().copy() for v in self.model.trainable_variables])


def fit(model, callbacks, epochs=5, initial_epoch=0):
    model.fit(
        X,
        Y,
        batch_size=8,
        shuffle=False,
        epochs=epochs,
        initial_epoch=initial_epoch,
        callbacks=callbacks,
        verbose=0,
    )


def test_the_model_ends_with_the_mean_of_the_last_epochs():
    model, snapshots = make_model(), Snapshots()
    fit(model, [snapshots, StochasticWeightAveraging(start_epoch=2)])
    for variable, *epochs in zip(model.trainable_variables, *snapshots.weights[2:], strict=True):
        np.testing.assert_allclose(variable, np.mean(epochs, axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("start", [2, 4])
def test_batch_normalization_is_estimated_for_the_averaged_weights(start):
    model = make_model(batch_norm=True)
    momentum = model.layers[1].momentum
    fit(model, [StochasticWeightAveraging(start, batches=lambda: [X[:12], X[12:]])])
    hidden = [np.asarray(model.layers[0](half)) for half in (X[:12], X[12:])]
    norm = model.layers[1]
    mean = np.mean([h.mean(0) for h in hidden], axis=0)
    variance = np.mean([h.var(0) for h in hidden], axis=0)
    np.testing.assert_allclose(norm.moving_mean, mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(norm.moving_variance, variance, rtol=1e-4)
    assert norm.momentum == momentum


@pytest.mark.parametrize("stop", [2, 4])
def test_averages_survive_a_restart(stop, tmp_path):
    straight = make_model()
    fit(straight, [StochasticWeightAveraging(2)])

    swa = StochasticWeightAveraging(2)
    killed = make_model()
    fit(killed, [swa, Resume(tmp_path, stateful_callbacks={"swa": swa})], epochs=stop)

    swa = StochasticWeightAveraging(2)
    model, resume = make_model(), Resume(tmp_path, stateful_callbacks={"swa": swa})
    done = resume.restore(model)
    assert done == stop
    fit(model, [swa, resume], initial_epoch=done)
    for ours, theirs in zip(model.weights, straight.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
