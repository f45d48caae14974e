"""Losses and similarities on another Keras backend: numbers as on TensorFlow, in one process."""

import json
from pathlib import Path

import numpy as np
import pytest

import loss_loops as loops
from gradients import value_and_gradients
from oracles import random_gaussians, random_sets
from processes import python
from zoo import losses
from zoo import similarities as S

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import json
import sys
import jax
import keras
import numpy as np
from keras import ops
from keras.saving import deserialize_keras_object
from zoo import similarities as S
import zoo.losses

assert keras.backend.backend() == "jax"
folder = sys.argv[1]
calls = json.load(open(f"{folder}/calls.json"))
out = {}

arrays = dict(np.load(f"{folder}/losses.npz"))
for name, (config, keys) in calls["losses"].items():
    function = deserialize_keras_object(config)
    first, second = ({k: arrays[v] for k, v in side.items()} for side in keys)
    if "matches" in first:
        call = lambda logits: function(first["matches"], logits)
        second = second["logits"]
    else:
        call = lambda side: function(first, side)
    out[name], gradients = jax.jit(jax.value_and_grad(call))(second)
    for number, gradient in enumerate(jax.tree.leaves(gradients)):
        out[f"{name}/{number}"] = gradient

data = np.load(f"{folder}/similarities.npz")
gaussians = [{k: data[f"{s}_{k}"] for k in ("mean", "log_variance")} for s in ("image", "caption")]
sets = [{k: data[f"{s}_{k}"] for k in ("elements", "mask")} for s in ("image", "caption")]

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

for name in calls["similarities"]:
    add(name, getattr(S, name), sets if name in calls["sets"] else gaussians)
for method in ("sampled", "moment_matched"):
    layer = S.MatchProbability(5.0, 5.0, method=method)
    add(f"MatchProbability {method}", layer, gaussians)
layer = S.MatchProbability(5.0, 5.0)
layer.build(None)
state = [[weight.value for weight in weights]
         for weights in (layer.trainable_variables, layer.non_trainable_variables)]
out["training"], _ = jax.jit(
    lambda *sides: layer.stateless_call(*state, *sides, training=True)
)(*gaussians)
np.savez(f"{folder}/out.npz", **out)
"""
# JAX compiles each alone, for half a second to two: one of each kind of Keras' operations.
NAMES, SET_NAMES = ["closed_form_sampled_distance", "bhattacharyya_distance"], ["smooth_chamfer"]


def losses_and_inputs():
    """By name `(loss, first argument, second argument)`."""
    rng = np.random.default_rng(19)
    matches, logits = loops.random_problem(rng, 6, 11, "empty")
    gaussians = random_gaussians(rng, 4, 6), random_gaussians(rng, 7, 6)
    sets = random_sets(rng, 4, 3, 6), random_sets(rng, 7, 2, 6)
    of_matrix = {
        "matching": losses.MatchingCrossentropy(0.1),
        "smooth_ap": losses.SmoothAveragePrecision(),
        "hardest": losses.TripletRanking(mining="hardest", reduction="mean"),
    }
    calls = {
        name: (loss, {"matches": matches}, {"logits": logits}) for name, loss in of_matrix.items()
    }
    calls["kl"] = losses.KLRegularizer(), *gaussians
    calls["discrepancy"] = losses.MaximumMeanDiscrepancy(squared=False), *sets
    return calls


def embeddings_and_weight():
    """Gaussians and sets of images and captions, and a weight for each pair."""
    rng = np.random.default_rng(7)
    gaussians = [random_gaussians(rng, n, 6) for n in (4, 5)]
    sets = [random_sets(rng, n, k, 6, masked=True) for n, k in ((4, 3), (5, 2))]
    return gaussians, sets, rng.normal(size=(4, 5)).astype("float32")


@pytest.fixture(scope="module")
def on_jax(tmp_path_factory):
    """All numbers of the process."""
    import keras

    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("jax")
    arrays, described = {}, {}
    for name, (function, *sides) in losses_and_inputs().items():
        keys = [{k: f"{name}/{n}/{k}" for k in side} for n, side in enumerate(sides)]
        arrays |= {keys[n][k]: v for n, side in enumerate(sides) for k, v in side.items()}
        described[name] = keras.saving.serialize_keras_object(function), keys
    np.savez(folder / "losses.npz", **arrays)
    names = {"similarities": NAMES + SET_NAMES, "sets": SET_NAMES}
    (folder / "calls.json").write_text(json.dumps({"losses": described, **names}))

    gaussians, sets, weight = embeddings_and_weight()
    arrays = {"weight": weight}
    for side, *embeddings in zip(("image", "caption"), gaussians, sets, strict=True):
        for embedding in embeddings:
            arrays.update({f"{side}_{k}": v for k, v in embedding.items()})
    np.savez(folder / "similarities.npz", **arrays)
    once = "--xla_backend_optimization_level=0"  # each program runs once
    jax = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": once}
    python("-c", PROGRAM, folder, PYTHONPATH=str(ROOT), **jax)
    return dict(np.load(folder / "out.npz"))


@pytest.mark.slow
def test_values_and_gradients_of_losses(on_jax):
    for name, (function, first, second) in losses_and_inputs().items():
        if "matches" in first:
            value, (gradient,) = value_and_gradients(
                lambda x, f=function, m=first["matches"]: f(m, x), second["logits"]
            )
            gradients = [gradient]
        else:
            value, (gradient,) = value_and_gradients(lambda x, f=function, m=first: f(m, x), second)
            gradients = [gradient[key] for key in sorted(gradient)]
        np.testing.assert_allclose(on_jax[name], value, rtol=1e-4, err_msg=name)
        for number, gradient in enumerate(gradients):
            expected = 0.0 if gradient is None else gradient
            np.testing.assert_allclose(
                on_jax[f"{name}/{number}"], expected, rtol=1e-3, atol=1e-6, err_msg=name
            )


@pytest.mark.slow
def test_values_and_gradients_of_similarities(on_jax):
    gaussians, sets, weight = embeddings_and_weight()
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
