"""Training on several replicas, in processes of their own and compiled by XLA."""

import json
import os
import socket
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import forked
from zoo.models import global_batch

SCRIPT = Path(__file__).parents[1] / "helpers" / "replicas.py"
# A sum over pairs with draws. Sets with terms between sides, a term of a second matrix, and so on
# depend on the other replica's rows in other ways: they are of `make test-slow`.
FIRST = ("pcme", "triplet, own negatives", "a last batch of one row", "validation")
SYSTEMS = ("dive", "daa", "pcmepp", "triplet")
PROPERTIES = (
    "pcmepp, own negatives",
    "batch normalization",
    "clipped",
    "mse of Keras",
)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def clusters(workers=2):
    """TF_CONFIG of each of some workers on this machine."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    return [
        json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})
        for index in range(workers)
    ]


def start(strategy, cases, **variables):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return forked.start(SCRIPT, strategy, *cases, env=environment)


def results(processes, timeout=900):
    try:
        done = [forked.finish(process, timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for one in done:
        assert one.returncode == 0, one.stderr
    return [json.loads(one.stdout.splitlines()[-1]) for one in done]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(FIRST, marks=pytest.mark.slow, id="first"),
        pytest.param((*SYSTEMS, *PROPERTIES), marks=pytest.mark.very_slow, id="others"),
    ],
)
def test_two_replicas_of_one_process_reach_the_weights_of_one_device(cases):
    (found,) = results([start("mirrored", cases)])
    assert set(found) == set(cases)
    with_own_negatives = {k: found.pop(k) for k in list(found) if k.endswith("own negatives")}
    assert max(found.values()) < 1e-5, found
    # The same comparison notices when replicas see their own negatives only.
    assert with_own_negatives
    assert min(with_own_negatives.values()) > 1e-4, with_own_negatives


@pytest.mark.very_slow
def test_four_replicas_of_one_process_reach_the_weights_of_one_device():
    """Eight rows on four replicas; five, and then one, which leave some replicas without a row."""
    cases = ("pcme", "daa", "a last batch of one row", "validation", "triplet, own negatives")
    (found,) = results([start("mirrored:4", cases)])
    assert found.pop("triplet, own negatives") > 1e-4
    assert max(found.values()) < 1e-5, found


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(("triplet",), marks=pytest.mark.slow, id="first"),
        pytest.param(("pcme", *SYSTEMS[:3]), marks=pytest.mark.very_slow, id="others"),
    ],
)
def test_two_processes_reach_the_weights_of_one_device(cases):
    found = results([start("multi_worker", cases, TF_CONFIG=config) for config in clusters()])
    for of_worker in found:
        assert set(of_worker) == set(cases)
        assert max(of_worker.values()) < 1e-5, of_worker


ROWS, DIM, LARGE = 3, 4, 2**25  # more than float32 can count


class Replica:
    """A replica context that knows what the other replicas send."""

    def __init__(self, number, sent):
        self.replica_id_in_sync_group = number
        self.sent = sent

    def all_gather(self, values, axis):
        self.sent[self.replica_id_in_sync_group] = values
        if None in self.sent:  # the first round: not all have sent yet
            return [tf.concat([value] * len(self.sent), axis) for value in values]
        return [tf.concat(parts, axis) for parts in zip(*self.sent, strict=True)]


def batches(count):
    """What each replica has: rows of images and captions, and their embeddings."""
    rng = np.random.default_rng(0)

    def rows():
        labels = rng.integers(0, 5, ROWS).astype("int32") + LARGE
        return {
            "images": rng.normal(size=(ROWS, 2)).astype("float32"),
            "captions": rng.integers(0, LARGE, (2 * ROWS, 5)).astype("int32"),
            "image_labels": labels,
            "caption_labels": np.repeat(labels, 2),
            "matches": rng.uniform(size=(ROWS, 2 * ROWS * count)) > 0.5,
        }

    def embedding(size):
        return {name: rng.normal(size=(size, DIM)).astype("float32") for name in ("mean", "log")}

    return [(rows(), embedding(ROWS), embedding(2 * ROWS)) for _ in range(count)]


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.very_slow)])
def test_gathering_compiles_with_fixed_shapes_and_gives_all_rows(count, monkeypatch):
    given = batches(count)
    weights = np.random.default_rng(1).normal(size=(count * ROWS, DIM)).astype("float32")
    monkeypatch.setattr(global_batch, "num_replicas", lambda: count)

    def step(given):
        sent, gathered, gradients = [None] * count, [], []
        for is_last in (False, True):
            for number, (batch, images, captions) in enumerate(given):
                context = Replica(number, sent)
                with monkeypatch.context() as patch, tf.GradientTape() as tape:
                    patch.setattr(tf.distribute, "get_replica_context", lambda c=context: c)
                    tape.watch(images)
                    found = global_batch.gather(batch, images, captions)
                    if not is_last:
                        continue
                    loss = global_batch.share(tf.reduce_sum(found[1]["mean"] * weights))
                gathered.append(found)
                gradients.append(tape.gradient(loss, images)["mean"])
        return gathered, gradients

    compiled = tf.function(step, jit_compile=True)
    tensors = tf.nest.map_structure(tf.constant, given)
    gathered, gradients = compiled(tensors)
    program = compiled.experimental_get_compiler_ir(tensors)(stage="hlo")
    assert "HloModule" in program
    assert "<=" not in program  # a dimension that has a bound and no size
    assert "custom-call" not in program  # nothing is asked of the host
    whole = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *given)
    for number, (batch, images, captions) in enumerate(gathered):
        assert "images" not in batch
        expected = {name: value for name, value in whole[0].items() if name != "images"}
        keras.tree.map_structure(np.testing.assert_array_equal, batch, expected)
        keras.tree.map_structure(np.testing.assert_array_equal, (images, captions), whole[1:])
        own = slice(number * ROWS, (number + 1) * ROWS)
        # A share of the loss on each replica, which all replicas' sum makes whole again.
        np.testing.assert_allclose(gradients[number], weights[own], rtol=1e-6)
