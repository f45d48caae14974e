"""One of two worker processes is killed in the middle; the command given again ends as if nothing
had happened."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import own_vectors
from zoo.training.history import read_history

RECIPE = Path(own_vectors.__file__)
ROOT = RECIPE.parent.parent
SMALL = ("--method=pcmepp", "--batch-size=32", "--epochs=3", "--steps-per-epoch=4")
WAIT = 900  # seconds


def start_workers(files, out):
    """Two processes of the recipe, which talk to each other on the loopback."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    arguments = [f"--{name}={files / name}.npy" for name in ("images", "captions")]
    command = [sys.executable, str(RECIPE), *arguments, f"--out={out}", *SMALL]
    workers = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": hosts}, "task": task})
        log = (out.parent / f"{out.name}-{time.time_ns()}-{index}.log").open("w")
        workers.append(
            subprocess.Popen(
                [*command, "--strategy=multi_worker"],
                env={**os.environ, "TF_CONFIG": config, "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )
    return workers


def finish(workers, out):
    """Waits for both workers, which must succeed."""
    try:
        codes = [worker.wait(WAIT) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    logs = sorted(out.parent.glob(f"{out.name}-*.log"))[-2:]
    assert codes == [0, 0], "".join(log.read_text() for log in logs)


def wait_for_epoch(out, epoch, workers):
    """Waits until the history has an epoch."""
    until = time.time() + WAIT
    while time.time() < until and all(worker.poll() is None for worker in workers):
        path = out / "history.csv"
        if path.exists() and len(read_history(path)["epoch"]) >= epoch:
            return
        time.sleep(0.05)
    raise AssertionError("the run ended before it was killed")


def weights_of(out):
    """All arrays of the model that a run ends with."""
    import zoo

    return [np.asarray(weight) for weight in zoo.from_preset(out).weights]


@pytest.mark.very_slow
def test_a_killed_worker_and_the_command_again_end_as_an_undisturbed_run(files, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "run"
    finish(start_workers(files, whole), whole)
    workers = start_workers(files, out)
    wait_for_epoch(out, 1, workers)
    workers[1].send_signal(signal.SIGKILL)
    try:
        assert workers[0].wait(180) != 0, "without the other it cannot end well"
    finally:
        workers[0].kill()
    finish(start_workers(files, out), out)
    for name in ("loss", "epoch"):
        found, expected = (read_history(folder / "history.csv")[name] for folder in (out, whole))
        print(name, list(found), list(expected))
        np.testing.assert_array_equal(found, expected)
    found, expected = weights_of(out), weights_of(whole)
    pairs = zip(found, expected, strict=True)
    print("largest difference", max(np.abs(one - other).max() for one, other in pairs))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
