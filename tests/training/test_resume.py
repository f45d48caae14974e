import random
import signal
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import forked
from halo_search.errors import InputError
from zoo.training.history import HistoryFile, read_history
from zoo.training.resume import Resume

EPOCHS = 2


def make_model(units=4):
    random.seed(0)
    backbone = keras.Sequential(
        [keras.layers.Dense(6, activation="relu"), keras.layers.BatchNormalization()],
        name="backbone",
    )
    inputs = keras.Input((5,))
    x = keras.layers.Dropout(0.3)(backbone(inputs))
    return keras.Model(inputs, keras.layers.Dense(units)(x))


def phases(model, folder, stop_after=None):
    """Warm-up with a frozen backbone, then fine-tuning; dies after `stop_after` epochs in all."""
    x = np.random.default_rng(0).normal(size=(16, 5)).astype("float32")
    y = np.random.default_rng(1).normal(size=(16, 4)).astype("float32")
    ran = 0
    for phase, trainable in (("warm_up", False), ("fine_tuning", True)):
        model.get_layer("backbone").trainable = trainable
        schedule = keras.optimizers.schedules.CosineDecay(0.05, decay_steps=2 * EPOCHS)
        # Eager steps: two batches are not worth a trace.
        model.compile(keras.optimizers.Adam(schedule), "mse", run_eagerly=True)
        resume = Resume(folder / "checkpoints", phase)
        done = resume.restore(model)
        history = HistoryFile(folder / "history.csv", phase)
        for epoch in range(done, EPOCHS):
            if ran == stop_after:
                return
            model.fit(
                x,
                y,
                batch_size=8,
                shuffle=False,
                initial_epoch=epoch,
                epochs=epoch + 1,
                callbacks=[history, resume],
                verbose=0,
            )
            ran += 1


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight")
    model = make_model()
    phases(model, folder)
    return model, read_history(folder / "history.csv")


def test_a_model_of_a_strategy_is_restored_outside_of_its_scope(tmp_path):
    models = []
    for _ in range(2):
        with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
            models.append(make_model())
            models[-1].compile(keras.optimizers.Adam(0.05), "mse", run_eagerly=True)
    first, second = models
    x = np.ones((8, 5), "float32")
    first.fit(x, np.ones((8, 4)), verbose=0, callbacks=[Resume(tmp_path)])
    assert Resume(tmp_path).restore(second) == 1
    for one, other in zip(first.optimizer.variables, second.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)


@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_resumed_run_ends_with_the_weights_of_a_straight_one(stop_after, tmp_path, uninterrupted):
    phases(make_model(), tmp_path, stop_after)
    # What a process leaves that was killed while it wrote its next checkpoint.
    half = tmp_path / "checkpoints" / ".tmp-0123456789abcdef-fine_tuning-00009.npz"
    half.write_bytes(b"PK half")
    model = make_model()
    phases(model, tmp_path)

    straight, history = uninterrupted
    assert len(model.variables) == len(straight.variables) > len(model.weights)  # seeds too
    for ours, theirs in zip(model.variables, straight.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)
    for ours, theirs in zip(model.optimizer.variables, straight.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)
    resumed = read_history(tmp_path / "history.csv")
    assert resumed["phase"] == ["warm_up"] * 2 + ["fine_tuning"] * 2
    for name in ("epoch", "loss", "learning_rate"):
        np.testing.assert_array_equal(resumed[name], history[name])


def test_only_the_last_checkpoints_stay_and_a_damaged_one_is_passed_over(tmp_path):
    model = make_model()
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    resume = Resume(tmp_path, "train")
    resume.set_model(model)
    for epoch in range(1, 5):
        model.layers[-1].bias.assign(np.full(4, epoch))
        resume.on_epoch_end(epoch - 1, {"loss": 1.0})
    assert [epoch for epoch, _ in resume.checkpoints()] == [4, 3]
    resume.on_epoch_end(4, {"loss": float("nan")})
    assert [epoch for epoch, _ in resume.checkpoints()] == [4, 3]
    assert Resume(tmp_path, "rain").checkpoints() == []

    last = resume.checkpoints()[0][1]
    last.write_bytes(last.read_bytes()[:-200])
    with pytest.warns(UserWarning, match="train-00004"):
        assert resume.restore(model) == 3
    np.testing.assert_array_equal(model.layers[-1].bias, np.full(4, 3.0))
    before = resume.checkpoints()[1][1]
    before.write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="cannot be read"),
        pytest.raises(InputError, match="no checkpoint of 'train'"),
    ):
        resume.restore(model)


def test_a_checkpoint_of_another_model_is_refused_whole(tmp_path):
    small, large = make_model(4), make_model(7)
    for model in (small, large):
        model.compile("adam", "mse")
        model.optimizer.build(model.trainable_variables)
    resume = Resume(tmp_path)
    resume.set_model(small)
    resume.save(1)
    before = large.get_weights()
    with pytest.raises(InputError, match=r"\(6, 4\) for .*kernel, not \(6, 7\)"):
        Resume(tmp_path).restore(large)
    for ours, theirs in zip(large.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    large.layers[-1].trainable = False
    other = make_model(4)
    other.layers[-1].trainable = False
    other.compile("adam", "mse")
    with pytest.raises(InputError, match="the optimizer has"):
        Resume(tmp_path).restore(other)


def test_history_repeats_no_epoch_and_takes_new_columns(tmp_path):
    model = make_model()
    model.compile("sgd", "mse")
    path = tmp_path / "history.csv"
    for phase, epoch, logs in (
        ("a", 0, {"loss": 3.0}),
        ("a", 1, {"loss": 2.0}),
        ("a", 1, {"loss": 2.5}),  # run again after a crash
        ("b", 0, {"loss": 1.0, "val_rsum": 70.0}),
    ):
        history = HistoryFile(path, phase)
        history.set_model(model)
        history.on_epoch_begin(epoch)
        history.on_epoch_end(epoch, logs)
    history = read_history(path)
    assert history["phase"] == ["a", "a", "b"]
    np.testing.assert_array_equal(history["epoch"], [1, 2, 1])
    np.testing.assert_array_equal(history["loss"], [3.0, 2.5, 1.0])
    np.testing.assert_array_equal(history["val_rsum"], [np.nan, np.nan, 70.0])
    np.testing.assert_allclose(history["learning_rate"], 0.01)
    assert (history["seconds"] >= 0).all()

    with pytest.raises(InputError, match="cannot read"):
        read_history(tmp_path / "missing.csv")
    path.write_text("loss\n1\n")
    with pytest.raises(InputError, match="line 1"):
        read_history(path)


def test_a_process_killed_between_writing_and_renaming_resumes_exactly(tmp_path, uninterrupted):
    """A real SIGKILL at the worst moment: the third checkpoint is whole but not yet in place."""
    script = f"""
import os, pathlib, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_resume import make_model, phases
replace = os.replace
def dying(source, target):
    if pathlib.Path(target).name == "fine_tuning-00001.npz":
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = dying
phases(make_model(), pathlib.Path({str(tmp_path)!r}))
"""
    done = forked.run(script)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list((tmp_path / "checkpoints").glob(".tmp-*"))) == 1
    assert read_history(tmp_path / "history.csv")["phase"] == ["warm_up", "warm_up", "fine_tuning"]
    model = make_model()
    phases(model, tmp_path)
    for ours, theirs in zip(model.variables, uninterrupted[0].variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)
    history = read_history(tmp_path / "history.csv")
    np.testing.assert_array_equal(history["loss"], uninterrupted[1]["loss"])
