"""Training on several replicas gives one device's weights, for every kind of loss."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clusters import clusters

SCRIPT = Path(__file__).parents[1] / "helpers" / "replicas.py"
SYSTEMS = ("pcme", "pcmepp", "dive", "triplet", "daa")


def start(strategy, **variables):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return subprocess.Popen(
        [sys.executable, SCRIPT, strategy],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(processes, timeout=900):
    """What each printed last; every process has ended afterwards."""
    try:
        outputs = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(printed.splitlines()[-1]) for printed, _ in outputs]


@pytest.mark.slow
def test_two_replicas_of_one_process_reach_the_weights_of_one_device():
    (found,) = results([start("mirrored")])
    with_own_negatives = {k: found.pop(k) for k in list(found) if k.endswith("own negatives")}
    assert set(found) > set(SYSTEMS)
    assert max(found.values()) < 1e-5, found
    # The same comparison notices when replicas see their own negatives only.
    assert with_own_negatives
    assert min(with_own_negatives.values()) > 1e-4, with_own_negatives


@pytest.mark.slow
def test_two_processes_reach_the_weights_of_one_device():
    found = results([start("multi_worker", TF_CONFIG=config) for config in clusters()])
    for of_worker in found:
        assert set(of_worker) == set(SYSTEMS)
        assert max(of_worker.values()) < 1e-5, of_worker
