"""The losses on another Keras backend: values and gradients as on TensorFlow, in one process."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import loss_loops as loops
from gradients import value_and_gradients
from oracles import random_gaussians, random_sets
from zoo import losses

SCRIPT = """
import sys
import jax
import keras
import numpy as np
from keras.saving import deserialize_keras_object
import json
import zoo.losses

assert keras.backend.backend() == "jax"
folder = sys.argv[1]
arrays = dict(np.load(f"{folder}/inputs.npz"))
results = {}
for name, (config, keys) in json.load(open(f"{folder}/calls.json")).items():
    function = deserialize_keras_object(config)
    first, second = ({k: arrays[v] for k, v in side.items()} for side in keys)
    if "matches" in first:
        call = lambda logits: function(first["matches"], logits)
        second = second["logits"]
    else:
        call = lambda side: function(first, side)
    results[name], gradients = jax.jit(jax.value_and_grad(call))(second)
    for number, gradient in enumerate(jax.tree.leaves(gradients)):
        results[f"{name}/{number}"] = gradient
    results[f"{name}/eager"] = call(second)
np.savez(f"{folder}/results.npz", **results)
"""


@pytest.mark.slow
def test_values_and_gradients_on_jax(tmp_path):
    import keras

    rng = np.random.default_rng(19)
    matches, logits = loops.random_problem(rng, 6, 11, "empty")
    gaussians = random_gaussians(rng, 4, 6), random_gaussians(rng, 7, 6)
    sets = random_sets(rng, 4, 3, 6), random_sets(rng, 7, 2, 6)
    calls = {
        "matching": (losses.MatchingCrossentropy(0.1), {"matches": matches}, {"logits": logits}),
        "nce": (losses.InfoNCE(), {"matches": matches}, {"logits": logits}),
        "smooth_ap": (losses.SmoothAveragePrecision(), {"matches": matches}, {"logits": logits}),
        "asp": (losses.SemanticPrecision(0.1), {"matches": -logits}, {"logits": logits}),
        "kl": (losses.KLRegularizer(), *gaussians),
        "uniformity": (losses.Uniformity(), *gaussians),
        "discrepancy": (losses.MaximumMeanDiscrepancy(squared=False), *sets),
        "diversity": (losses.Diversity(), *sets),
    }
    for mining in ("sum", "hardest", "semi_hard"):
        loss = losses.TripletRanking(mining=mining, reduction="mean")
        calls[mining] = (loss, {"matches": matches}, {"logits": logits})

    arrays, described = {}, {}
    for name, (function, *sides) in calls.items():
        keys = [{k: f"{name}/{n}/{k}" for k in side} for n, side in enumerate(sides)]
        arrays |= {keys[n][k]: v for n, side in enumerate(sides) for k, v in side.items()}
        described[name] = keras.saving.serialize_keras_object(function), keys
    np.savez(tmp_path / "inputs.npz", **arrays)
    (tmp_path / "calls.json").write_text(json.dumps(described))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    received = dict(np.load(tmp_path / "results.npz"))
    for name, (function, first, second) in calls.items():
        if "matches" in first:
            value, (gradient,) = value_and_gradients(
                lambda x, f=function, m=first["matches"]: f(m, x), second["logits"]
            )
            gradients = [gradient]
        else:
            value, (gradient,) = value_and_gradients(lambda x, f=function, m=first: f(m, x), second)
            gradients = [gradient[key] for key in sorted(gradient)]
        np.testing.assert_allclose(received[name], value, rtol=1e-4, err_msg=name)
        np.testing.assert_allclose(received[f"{name}/eager"], value, rtol=1e-4, err_msg=name)
        for number, gradient in enumerate(gradients):
            expected = 0.0 if gradient is None else gradient
            np.testing.assert_allclose(
                received[f"{name}/{number}"], expected, rtol=1e-3, atol=1e-6, err_msg=name
            )
