"""What `global_batch.gather` does, compiled by XLA for several replicas, as a TPU compiles it.

The collective alone, of which logical CPUs have none that XLA compiles, is replaced here.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.models import global_batch

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
