import random
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo import losses
from zoo.training import CollapseCheck, CollapseWarning


def noise(pairs=64, dim=24, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(pairs, dtype="int32")
    return {
        "images": rng.normal(size=(pairs, dim)).astype("float32"),
        "captions": rng.integers(1, 40, (pairs, 8)).astype("int32"),
        "image_labels": labels,
        "caption_labels": labels,
    }


def fit(mining, epochs=4, bound=0.02):
    random.seed(0)
    model = zoo.models.vsepp((24,), vocabulary_size=40, dim=16, word_dim=8, max_length=8)
    # Other pairs in every step: nothing that could be learnt.
    stream = tf.data.Dataset.from_generator(
        lambda: (noise(seed=step) for step in range(10_000)),
        output_signature={
            name: tf.TensorSpec(value.shape, value.dtype) for name, value in noise().items()
        },
    )
    model.compile(keras.optimizers.Adam(5e-3), loss=losses.TripletRanking(0.2, mining=mining))
    check = CollapseCheck(noise(), bound)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logs = model.fit(stream, epochs=epochs, steps_per_epoch=50, verbose=0, callbacks=[check])
    ours = [w for w in caught if w.category is CollapseWarning]
    return check, ours, logs.history["loss"]


def test_hardest_negatives_collapse_and_are_reported_once():
    check, caught, loss = fit("hardest")
    assert check.spread < 0.02
    # Twice the margin for every pair, about, since every similarity is the same, about.
    np.testing.assert_allclose(loss[-1], 2 * 0.2 * 64, rtol=0.2)
    assert len(caught) == 1
    assert "mining='sum'" in str(caught[0].message)


def test_a_healthy_model_is_not_reported():
    check, caught, _ = fit("sum", epochs=1)
    assert check.spread > 0.02
    assert not caught


@pytest.mark.parametrize("axis", [0, 1])
def test_spread_is_within_queries(axis):
    """Rows that are constant but differ from each other tell nothing either."""
    constant = np.broadcast_to(np.arange(5.0), (4, 5)) if axis else np.arange(4.0)[:, None] * [1, 1]
    assert zoo.training.checks.spread(constant) == 0
    assert zoo.training.checks.spread([[0.0, 2.0], [2.0, 0.0]]) == 1.0
