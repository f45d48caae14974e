"""The same numbers on JAX, in one process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oracles

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import keras, numpy as np
from keras import ops
assert keras.backend.backend() == "jax"
import jax
from zoo import similarities as S

data = np.load(sys.argv[1])
gaussians = [{k: data[f"{s}_{k}"] for k in ("mean", "log_variance")} for s in ("image", "caption")]
sets = [{k: data[f"{s}_{k}"] for k in ("elements", "mask")} for s in ("image", "caption")]
out = {}

def add(name, function, inputs):
    def total(i, c):
        value = function(*({**e, **v} for e, v in zip(inputs, (i, c))))
        return ops.sum(data["weight"] * value), value
    wanted = [{k: v for k, v in e.items() if k != "mask"} for e in inputs]
    run = jax.jit(jax.value_and_grad(total, (0, 1), has_aux=True))
    (_, out[name]), gradients = run(*wanted)
    for side, gradient in zip(("image", "caption"), gradients):
        for key, value in gradient.items():
            out[f"{name}/{side}_{key}"] = value

for name in sys.argv[3].split(","):
    add(name, getattr(S, name), sets if name in sys.argv[4].split(",") else gaussians)
for method in ("sampled", "moment_matched"):
    layer = S.MatchProbability(5.0, 5.0, method=method)
    add(f"MatchProbability {method}", layer, gaussians)
layer = S.MatchProbability(5.0, 5.0)
out["training"] = layer(*gaussians, training=True)
np.savez(sys.argv[2], **out)
"""
NAMES = [
    "closed_form_sampled_distance",
    "wasserstein_2",
    "kl_divergence",
    "reverse_kl_divergence",
    "min_kl_divergence",
    "jeffreys_divergence",
    "log_expected_likelihood",
    "bhattacharyya_distance",
    "cosine",
]
SET_NAMES = ["maximum_pair", "chamfer", "smooth_chamfer"]


@pytest.mark.slow
def test_jax_agrees_with_values_and_gradients(tmp_path):
    pytest.importorskip("jax")
    from gradients import value_and_gradients
    from zoo import similarities as S

    rng = np.random.default_rng(7)
    gaussians = [oracles.random_gaussians(rng, n, 6) for n in (4, 5)]
    sets = [oracles.random_sets(rng, n, k, 6, masked=True) for n, k in ((4, 3), (5, 2))]
    weight = rng.normal(size=(4, 5)).astype("float32")
    arrays = {"weight": weight}
    for side, *embeddings in zip(("image", "caption"), gaussians, sets, strict=True):
        for embedding in embeddings:
            arrays.update({f"{side}_{k}": v for k, v in embedding.items()})
    np.savez(tmp_path / "in.npz", **arrays)
    names, set_names = ",".join(NAMES + SET_NAMES), ",".join(SET_NAMES)
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            tmp_path / "in.npz",
            tmp_path / "out.npz",
            names,
            set_names,
        ],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    on_jax = np.load(tmp_path / "out.npz")

    functions = {name: getattr(S, name) for name in NAMES + SET_NAMES}
    for method in ("sampled", "moment_matched"):
        functions[f"MatchProbability {method}"] = S.MatchProbability(5.0, 5.0, method=method)
    for name, function in functions.items():
        inputs = sets if name in SET_NAMES else gaussians
        value, gradients = value_and_gradients(function, *inputs, weight=weight)
        np.testing.assert_allclose(on_jax[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
        for side, gradient in zip(("image", "caption"), gradients, strict=True):
            for key, expected in gradient.items():
                if expected is None:  # a mask, or the variance that a cosine does not read
                    continue
                np.testing.assert_allclose(
                    on_jax[f"{name}/{side}_{key}"],
                    expected,
                    rtol=1e-3,
                    atol=1e-4,
                    err_msg=f"{name} {side} {key}",
                )
    assert np.isfinite(on_jax["training"]).all()
