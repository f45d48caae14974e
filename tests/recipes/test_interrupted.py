"""Ctrl+C in an epoch, a disk that fills up, a folder that cannot be written: one line, then on."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import forked
import own_vectors
from zoo import cli
from zoo.models.run_folder import RunFolder
from zoo.training.history import read_history

RECIPES = str(Path(own_vectors.__file__).parent)
pytestmark = pytest.mark.usefixtures("run_eagerly")
# The recipe with the cheapest steps: a run of it begins, trains, ends and resumes as any other's.
SMALL = ("--method=pcmepp", "--batch-size=32", "--epochs=2", "--steps-per-epoch=2")


def _arguments(files, out):
    both = [f"--{name}={files / name}.npy" for name in ("images", "captions")]
    return [*both, f"--out={out}", *SMALL]


def _called(capsys, files, out):
    """`(exit code, lines of errors)` of the command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        cli.run(own_vectors.main, _arguments(files, out))
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return stop.value.code, [line for line in error.splitlines() if line.startswith("error:")]


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    """The history of a run that nothing has interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    own_vectors.main(_arguments(files, out))
    return read_history(out / "history.csv")


@pytest.mark.slow
def test_control_c_in_an_epoch_is_one_word_and_the_next_call_goes_on(
    files, whole, tmp_path, capsys
):
    out = tmp_path / "run"
    script = f"""
import os, signal, sys
import keras
import tensorflow as tf
tf.config.run_functions_eagerly(True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` lets children ignore it
sys.path.insert(0, {RECIPES!r})
import own_vectors
from zoo.cli import run
ended, count = keras.callbacks.CallbackList.on_train_batch_end, 0
def interrupted(self, *args, **kwargs):
    global count
    count += 1
    if count == 3:  # two steps an epoch
        os.kill(os.getpid(), signal.SIGINT)
    ended(self, *args, **kwargs)
keras.callbacks.CallbackList.on_train_batch_end = interrupted
run(own_vectors.main, {_arguments(files, out)!r})
"""
    done = forked.run(script)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr
    assert list(read_history(out / "history.csv")["epoch"]) == [1]
    assert not list(out.rglob(".tmp-*"))
    assert _called(capsys, files, out) == (0, [])
    np.testing.assert_allclose(read_history(out / "history.csv")["loss"], whole["loss"], rtol=1e-4)


@pytest.mark.slow
def test_a_disk_that_fills_up_anywhere_is_one_line_and_the_next_call_goes_on(
    files, whole, tmp_path, capsys, monkeypatch
):
    """Each call may put some more files into their place than the one before."""
    out, replace, left = tmp_path / "run", os.replace, 0

    def full(source, target, **kwargs):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        replace(source, target, **kwargs)

    monkeypatch.setattr(os, "replace", full)
    failed = set()
    for allowed in range(0, 60, 3):
        left = allowed
        code, lines = _called(capsys, files, out)
        if code == 0:
            break
        assert code == 2
        (line,) = lines
        assert "No space left" in line
        failed.add(line.split("cannot write ")[-1].partition(":")[0].rpartition("/")[2])
        assert not list(out.rglob(".tmp-*"))
    assert RunFolder.existing(out).finished
    assert {"written.json", "config.json", "history.csv"} & failed
    assert len(failed) >= 3, failed
    np.testing.assert_allclose(read_history(out / "history.csv")["loss"], whole["loss"], rtol=1e-4)
