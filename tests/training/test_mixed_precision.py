"""Half precision trains the papers' systems: 20 steps, a file, and a resumed run, on the CPU."""

import functools
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo import encoders, losses, models, training
from zoo.data.text.captions import WordTokenizer
from zoo.training.resume import Resume

POLICIES = ("mixed_float16", "mixed_bfloat16")
STEPS, HALF = 20, 10
PAIRS, WORDS, SIZE = 8, 6, 32
TOLERANCE = 0.02  # of the float32 loss, at every step
RATE = 1e-4  # PCME's
# Keras begins at 2¹⁵ and skips the steps whose scaled gradients overflow: here none does.
SCALE = 16.0
VOCABULARY = WordTokenizer([f"w{number}" for number in range(20)], max_words=WORDS)
SMALL = {"dim": 16, "image_size": SIZE, "tokenizer": VOCABULARY}


def pcme_with_daa():
    bert = encoders.bert(
        None, VOCABULARY.vocabulary_size(), WORDS, 0.0, num_layers=1, num_heads=2, hidden_dim=16
    )  # without dropout, whose masks differ by type
    model = models.pcme_bert("tiny", caption_backbone=bert, log_variance_bias=-4.0, **SMALL)
    precision = losses.SemanticPrecision(0.1)
    return model.with_auxiliaries(losses.AuxiliaryRanking(precision, weight=100.0))


SYSTEMS = {
    "pcme": lambda: models.pcme("tiny", word_dim=8, log_variance_bias=-4.0, **SMALL),
    "pcmepp": lambda: models.pcmepp("tiny", word_dim=8, **SMALL),
    "dive": lambda: models.dive("tiny", word_dim=8, num_slots=2, num_iterations=2, **SMALL),
    "daa": pcme_with_daa,
}
pytestmark = [pytest.mark.very_slow, pytest.mark.parametrize("name", SYSTEMS)]


@pytest.fixture(autouse=True)
def _forgotten_graphs(forget):
    """The graphs of all systems together would take 8 GB."""
    yield
    keras.backend.clear_session(free_memory=True)
    forget()


def batches():
    """The same `STEPS` batches in every run."""
    rng = np.random.default_rng(0)

    def batch():
        labels = np.arange(PAIRS, dtype="int32")
        return {
            "images": rng.uniform(0, 255, (PAIRS, SIZE, SIZE, 3)).astype("float32"),
            "captions": rng.integers(1, 20, (PAIRS, WORDS)).astype("int32"),
            "image_labels": labels,
            "caption_labels": labels,
            "semantic": rng.uniform(size=(PAIRS, PAIRS)).astype("float32"),
        }

    listed = [batch() for _ in range(STEPS)]
    stacked = {key: np.stack([one[key] for one in listed]) for key in listed[0]}
    return tf.data.Dataset.from_tensor_slices(stacked)


def built(name, policy):
    """The system under a policy, compiled, with the same weights under every policy."""
    random.seed(0)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = SYSTEMS[name]()
        optimizer = training.AdamP(RATE, global_clipnorm=2.0)
        if policy == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=SCALE)
        model.compile(optimizer)
    finally:
        keras.config.set_dtype_policy(before)
    return model


def fit(model, first, last, callbacks=()):
    """The losses of the steps `first` to `last`, each an epoch, so that Keras logs each alone."""
    history = model.fit(
        batches().skip(first).take(last - first),
        initial_epoch=first,
        epochs=last,
        steps_per_epoch=1,
        verbose=0,
        callbacks=list(callbacks),
    )
    return np.array(history.history["loss"])


@functools.cache
def in_float32(name):
    return fit(built(name, "float32"), 0, STEPS)


@pytest.mark.parametrize("policy", POLICIES)
def test_it_learns_as_in_float32_and_resumes(name, policy, tmp_path):
    model = built(name, policy)
    resume = Resume(tmp_path, "training")
    found = np.concatenate([fit(model, 0, HALF, [resume]), fit(model, HALF, STEPS)])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, in_float32(name), rtol=TOLERANCE)
    assert any(layer.compute_dtype != "float32" for layer in model._flatten_layers())

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    batch = next(iter(batches()))
    expected = model({"images": batch["images"], "captions": batch["captions"]})
    outputs = loaded({"images": batch["images"], "captions": batch["captions"]})
    keras.tree.map_structure(
        lambda one, other: np.testing.assert_array_equal(np.asarray(one), np.asarray(other)),
        outputs,
        expected,
    )

    resumed = built(name, policy)
    assert Resume(tmp_path, "training").restore(resumed) == HALF
    np.testing.assert_allclose(fit(resumed, HALF, STEPS), found[HALF:], rtol=1e-6)
