"""What watches a training: validation, averages of weights, losses that are no numbers."""

import dataclasses
import errno
import os
import random
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from halo_search.errors import InputError
from zoo import models
from zoo.data import Split
from zoo.data.records import Records
from zoo.data.records.sources import Features
from zoo.data.text.captions import WordTokenizer
from zoo.evaluation import encode
from zoo.metrics import evaluate_retrieval
from zoo.models.run_folder import RunFolder
from zoo.training import BestEpoch, Resume, Validation, checks, fit_phase, read_best, restore_best
from zoo.training.averaging import StochasticWeightAveraging


def make_model(seed=0):
    random.seed(seed)
    image = keras.Input((4, 4, 3))
    backbone = keras.Model(image, keras.layers.Conv2D(4, 1)(image), name="backbone")
    words = WordTokenizer(["red", "green", "blue", "bird"], max_words=4)
    return models.pcme(backbone, words, dim=4, word_dim=4, image_size=4)


@pytest.fixture
def split():
    pixels = np.random.default_rng(0).uniform(0, 255, (3, 4, 4, 3)).astype("float32")
    records = Records(
        name="three",
        image_paths=["a", "b", "c"],
        captions=["red bird", "green bird", "blue bird", "bird"],
        caption_image=[0, 1, 2, 2],
        image_labels=[0, 1, 2],
        image_ids=[0, 1, 2],
    )
    return Split(records, Features(pixels))


def test_the_logs_have_what_the_metrics_say(split):
    model = make_model()
    callback = Validation(split)
    callback.set_model(model)
    logs = {}
    callback.on_epoch_end(0, logs)
    encoded = encode(model, split.records, split.source)
    expected = evaluate_retrieval(encoded.pairs(model.similarity), encoded.relevance)
    assert logs == {"val_rsum": pytest.approx(expected["rsum"])}


def test_classes_are_compared_by_the_mean_of_both_directions(split):
    records = dataclasses.replace(split.records, image_labels=[0, 0, 1], class_names=("a", "b"))
    model, logs = make_model(), {}
    callback = Validation(Split(records, split.source))
    callback.set_model(model)
    callback.on_epoch_end(0, logs)
    encoded = encode(model, records, split.source)
    found = evaluate_retrieval(encoded.pairs(model.similarity), encoded.relevance)
    both = [found["i2t_r_precision"], found["t2i_r_precision"]]
    assert both[0] != both[1]
    assert logs == {"val_r_precision": pytest.approx(np.mean(both))}


def epochs(tmp_path, model, values, phase="training", start=0):
    callback = BestEpoch(tmp_path, model, phase)
    for epoch, value in enumerate(values, start):
        for variable in model.trainable_variables:
            variable.assign(np.full(variable.shape, value, "float32"))
        callback.on_epoch_end(epoch, {"loss": 1.0, "val_rsum": value})


def test_the_best_epoch_of_all_phases_is_kept(tmp_path):
    model = make_model()
    epochs(tmp_path, model, [1.0, 3.0, 2.0], "warm_up")
    epochs(tmp_path, model, [2.5, 3.0], "training")
    best = restore_best(tmp_path / "best.npz", model)
    assert best == {"phase": "warm_up", "epoch": 2, "value": 3.0}
    assert all((np.asarray(v) == 3.0).all() for v in model.trainable_variables)


def test_the_whole_model_is_kept_where_a_part_is_fitted(tmp_path):
    model = make_model()
    part = model.with_image_encoder(model.image_encoder.get_layer("head"))
    callback = BestEpoch(tmp_path, model, "warm_up")
    callback.set_model(part)
    callback.on_epoch_end(0, {"loss": 1.0, "val_rsum": 1.0})
    kept = [np.array(v) for v in model.variables]
    for variable in model.trainable_variables:
        variable.assign(variable + 1.0)
    restore_best(tmp_path / "best.npz", model)
    for ours, theirs in zip(kept, model.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)


def test_what_is_no_number_and_other_workers_are_not_kept(tmp_path):
    model = make_model()
    BestEpoch(tmp_path, model, "a").on_epoch_end(0, {"loss": np.nan, "val_rsum": 5.0})
    BestEpoch(tmp_path, model, "a", writes=False).on_epoch_end(0, {"loss": 1.0, "val_rsum": 5.0})
    BestEpoch(tmp_path, model, "a").on_epoch_end(0, {"loss": 1.0})
    assert read_best(tmp_path / "best.npz") is None
    assert restore_best(tmp_path / "best.npz", model) is None


def test_a_file_of_another_model_or_half_a_file_is_named(tmp_path):
    model = make_model()
    epochs(tmp_path, model, [1.0])
    small = SimpleNamespace(variables=model.variables[:3])
    with pytest.raises(InputError, match="of another model"):
        restore_best(tmp_path / "best.npz", small)
    path = tmp_path / "best.npz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="cannot be read"):
        restore_best(path, model)


X = np.random.default_rng(0).normal(2.0, 3.0, size=(24, 3)).astype("float32")
Y = X[:, :2] * 2.0 - 1.0


def with_normalization(batch_norm=False):
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


def fit_epochs(model, callbacks, epochs=5, initial_epoch=0):
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
    model, snapshots = with_normalization(), Snapshots()
    fit_epochs(model, [snapshots, StochasticWeightAveraging(start_epoch=2)])
    for variable, *epochs in zip(model.trainable_variables, *snapshots.weights[2:], strict=True):
        np.testing.assert_allclose(variable, np.mean(epochs, axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("start", [2, 4])
def test_batch_normalization_is_estimated_for_the_averaged_weights(start):
    model = with_normalization(batch_norm=True)
    momentum = model.layers[1].momentum
    fit_epochs(model, [StochasticWeightAveraging(start, batches=lambda: [X[:12], X[12:]])])
    hidden = [np.asarray(model.layers[0](half)) for half in (X[:12], X[12:])]
    norm = model.layers[1]
    mean = np.mean([h.mean(0) for h in hidden], axis=0)
    variance = np.mean([h.var(0) for h in hidden], axis=0)
    np.testing.assert_allclose(norm.moving_mean, mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(norm.moving_variance, variance, rtol=1e-4)
    assert norm.momentum == momentum


@pytest.mark.parametrize("stop", [2, 4])
def test_averages_survive_a_restart(stop, tmp_path):
    straight = with_normalization()
    fit_epochs(straight, [StochasticWeightAveraging(2)])

    swa = StochasticWeightAveraging(2)
    killed = with_normalization()
    fit_epochs(killed, [swa, Resume(tmp_path, stateful_callbacks={"swa": swa})], epochs=stop)

    swa = StochasticWeightAveraging(2)
    model, resume = with_normalization(), Resume(tmp_path, stateful_callbacks={"swa": swa})
    done = resume.restore(model)
    assert done == stop
    fit_epochs(model, [swa, resume], initial_epoch=done)
    for ours, theirs in zip(model.weights, straight.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


LABELS = np.arange(2, dtype="int32")


class Line(keras.Model):
    def __init__(self):
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="ones")
        self.built = True

    def call(self, batch):
        return self.weight * batch["factor"]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return keras.ops.mean(y_pred)


def stream(factors):
    batches = {
        "factor": np.array(factors, "float32")[:, None],
        "image_labels": LABELS + 10 * np.arange(len(factors), dtype="int32")[:, None],
    }
    return lambda start: tf.data.Dataset.from_tensor_slices(batches).skip(start)


def fit(folder, factors, optimizer="sgd"):
    model = Line()
    model.compile(optimizer)
    run = RunFolder.open(folder, {})
    fit_phase(run, model, "training", stream(factors), epochs=len(factors) // 2, steps=2)
    return model


def test_a_loss_that_is_no_number_names_step_and_checkpoint(tmp_path):
    with pytest.raises(InputError) as caught:
        fit(tmp_path, [1.0, 1.0, 1.0, 1.0, 1.0, np.nan])
    said = str(caught.value)
    assert "the loss is nan at step 5 of 'training' (epoch 3)" in said
    assert f"good checkpoint: {tmp_path / 'checkpoints' / 'training-00002.npz'}." in said


def test_weights_that_are_no_numbers_are_no_checkpoint(tmp_path):
    with pytest.raises(InputError, match=r"step 4 .*training-00001.npz"):
        fit(tmp_path, [0.0, 0.0, 0.0, 3e38, 1.0, 1.0], keras.optimizers.SGD(10.0))
    kept = [path.name for path in (tmp_path / "checkpoints").glob("*.npz")]
    assert kept == ["training-00001.npz"]


def test_a_step_that_float16_skips_is_no_error(tmp_path):
    """The gradient times the loss scale overflows; the scale is halved, nothing else happens."""
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-3), initial_scale=3e38)
    model = fit(tmp_path, [4.0, 4.0, 4.0, 4.0], optimizer)
    assert float(optimizer.dynamic_scale) < 3e38
    assert np.isfinite(float(model.weight))
    assert float(model.weight) < 1.0


def test_a_disk_that_fills_up_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    written = []

    def fill_up(path, **arrays):
        written.append(path)
        if len(written) == 2:
            Path(path).write_bytes(b"PK half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        savez(path, **arrays)

    savez = np.savez
    monkeypatch.setattr(np, "savez", fill_up)
    with pytest.raises(InputError, match=r"cannot write .*training-00002\.npz: No space left"):
        fit(tmp_path, [1.0] * 6)
    model = Line()
    model.compile("sgd")
    assert Resume(tmp_path / "checkpoints", "training").restore(model) == 1
    kept = [path.name for path in (tmp_path / "checkpoints").glob("*.npz")]
    assert kept == ["training-00001.npz"]


def test_the_error_of_a_layer_is_its_own_sentence():
    text = (
        "Exception encountered when calling Dense.\n\n\x1b[1mwidths\n differ\x1b[0m\n\nArguments:"
    )
    assert checks.sentence(ValueError(text)) == "widths differ"
    assert checks.sentence(ValueError("widths\n\ndiffer")) == "widths differ"
