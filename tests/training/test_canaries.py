"""What of Keras we work around. Where one of these fails, a new Keras may need us no longer."""

import inspect
import os
import time

import keras
import pytest

import forked
from clusters import clusters

WORKER = """
import keras, numpy as np, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensors((np.ones((4, 2)), np.ones((4, 1)))).repeat()
model.fit(data, steps_per_epoch=1, verbose=0)
"""


@pytest.mark.slow
def test_keras_alone_cannot_fit_with_several_workers():
    """`DualEncoder._maybe_symbolic_build` and `global_batch.one_value_a_replica`."""
    workers = [
        forked.start(WORKER, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_CONFIG": config})
        for config in clusters()
    ]
    end = time.monotonic() + 120
    try:
        # When one fails the other may wait for it for ever.
        while time.monotonic() < end and {w.exitcode for w in workers} <= {None, 0}:
            if all(worker.exitcode == 0 for worker in workers):
                break
            time.sleep(0.1)
        codes = [worker.exitcode for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert codes != [0, 0], "stock Keras fits with several workers now: take the two hooks away"


def test_keras_clips_before_the_sum():
    """`zoo.compat.clip_after_the_sum`: `_clip_gradients` sees those of one replica."""
    optimizer = inspect.getsource(keras.optimizers.SGD._backend_apply_gradients)
    clips, updates = (optimizer.rindex(f"self.{name}(") for name in ("_clip_gradients", STEP))
    assert clips < updates
    assert "_all_reduce_sum_gradients" in inspect.getsource(getattr(keras.optimizers.SGD, STEP))


STEP = "_backend_update_step"


def test_keras_synchronizes_no_masked_statistics():
    """`zoo.compat.replace_moments`."""
    moments = inspect.getsource(keras.layers.BatchNormalization._moments)
    assert moments.count("synchronized") == 2  # the argument and its value, without a mask only
