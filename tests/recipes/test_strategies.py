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

ROOT = Path(__file__).parents[2]


@pytest.mark.very_slow
def test_two_workers_train_the_recipes_model(tmp_path):
    """One folder for both, which the chief alone writes; each reads its share of the batches."""
    flags = ["--smoke", "--batch-size=10", "--word-dropping=0", "--no-cache-features"]
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
    # Adam divides by a gradient's size, so that of one near 0 rounding decides the step.
    for one, its_twin in zip(*(model.weights for model in models), strict=True):
        away = np.abs(np.asarray(one) - np.asarray(its_twin))
        assert np.mean(away > 1e-4) <= 1e-3, one.path
        assert away.max() <= 1e-3, one.path
