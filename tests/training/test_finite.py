import errno
import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.errors import InputError
from zoo.models.run_folder import RunFolder
from zoo.training import Resume, checks, fit_phase

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
