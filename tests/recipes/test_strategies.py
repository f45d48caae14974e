"""A recipe of several workers is the recipe on one device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import zoo  # noqa: F401 (registers what the saved models are made of)
from clusters import clusters
from zoo.training.history import read_history

ROOT = Path(__file__).parents[2]
MOST = 3e-4  # of the norm of a variable's moments
PHASES = "warm_up-00002", "fine_tuning-00001"


def moments(checkpoint):
    """What Adam has gathered of each variable's gradients: of each a first and a second moment."""
    with np.load(checkpoint) as state:
        count = sum(name.startswith("optimizer/") for name in state)
        return [state[f"optimizer/{number}"] for number in range(1, count)]  # 0 counts steps


@pytest.mark.very_slow
def test_two_workers_train_the_recipes_model(tmp_path):
    """One folder for both, which the chief alone writes; each reads its share of the batches."""
    flags = ["--smoke", "--batch-size=10", "--word-dropping=0", "--no-cache-features"]
    # Adam divides by a gradient's size, so that of one near 0 rounding decides the step, and the
    # backbone's next gradient is off by a percent, as on one device. So it has a single step.
    flags += ["--steps-per-epoch=1", "--warm-up-epochs=2"]
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    script = [sys.executable, ROOT / "recipes/pcme_cub.py", *flags]
    done = subprocess.run([*script, "--out", alone], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    workers = [
        subprocess.Popen(
            [*script, "--out", spread, "--strategy", "multi_worker"],
            env={**os.environ, "TF_CONFIG": config},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for config in clusters()
    ]
    try:
        said = [worker.communicate(timeout=900) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [worker.returncode for worker in workers] == [0, 0], said
    metrics = [json.loads((out / "metrics.json").read_text()) for out in (alone, spread)]
    assert metrics[0]["retrieval"].keys() == metrics[1]["retrieval"].keys()
    models = [keras.saving.load_model(out / "model.keras") for out in (alone, spread)]
    histories = [read_history(out / "history.csv") for out in (alone, spread)]
    for name in ("loss", "kl", "uniformity"):  # of each step, as an epoch has one
        one, its_twin = (history[name] for history in histories)
        assert len(one) == 3
        np.testing.assert_allclose(its_twin, one, rtol=1e-4)
    # Of Adam's steps a wrong factor is left out, of what it gathers it is not.
    for phase in PHASES:
        both = [moments(out / "checkpoints" / f"{phase}.npz") for out in (alone, spread)]
        for number, (one, its_twin) in enumerate(zip(*both, strict=True)):
            away = np.linalg.norm(one - its_twin)
            assert away <= MOST * np.linalg.norm(one), (phase, number, one.shape)
    for one, its_twin in zip(*(model.weights for model in models), strict=True):
        away = np.abs(np.asarray(one) - np.asarray(its_twin))
        assert np.mean(away > 1e-4) <= 1e-3, one.path
    firsts = moments(alone / "checkpoints" / f"{PHASES[-1]}.npz")[::2]
    both = (model.trainable_weights for model in models)
    for one, its_twin, first in zip(*both, firsts, strict=True):
        away = np.abs(np.asarray(one) - np.asarray(its_twin))
        has_gradient = np.abs(first) > 1e-5 * np.abs(first).max()
        assert away[has_gradient].max() <= 1e-3, one.path
