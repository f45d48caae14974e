"""The step of every system lowers to XLA with shapes that are all fixed, as a TPU needs it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo import encoders, losses, models
from zoo.data.text.captions import WordTokenizer

WORDS = WordTokenizer(["bird", "red", "blue", "wing", "a", "small"], max_words=4)
SIZE = {"tokenizer": WORDS, "dim": 6, "word_dim": 4, "image_size": 16}
REGIONS = (3, 8)
SYSTEMS = {
    "pcme": lambda: models.pcme(pixels(), **SIZE),
    "pcmepp": lambda: models.pcmepp(pixels(), **SIZE),
    # Of its iterations, which are unrolled, the first and one that has others' slots.
    "dive": lambda: models.dive(REGIONS, **SIZE, num_iterations=2),
    "pvse": lambda: models.pvse(REGIONS, **SIZE),
    "vsepp": lambda: models.vsepp(pixels(), **SIZE),
    "daa": lambda: models.vsepp(pixels(), **SIZE).with_auxiliaries(
        losses.AuxiliaryRanking(losses.SemanticPrecision(0.1))
    ),
    "captioned vsrn": lambda: models.with_captioning(
        models.vsrn(
            encoders.image_features(REGIONS), tokenizer=WORDS, dim=6, word_dim=4, num_layers=1
        ),
        word_dim=4,
    ),
}


def pixels():
    image = keras.Input((16, 16, 3))
    return keras.Model(image, keras.layers.Conv2D(6, 3, 4)(image), name="backbone")


FIRST = ("dive", "daa")  # sets, and points with a term; the others are of `make test-slow`


def step_and_batch(name):
    model = SYSTEMS[name]()
    model.compile(keras.optimizers.SGD(0.01))
    model.optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(0)
    labels = np.arange(4, dtype="int32")
    batch = {
        "images": rng.uniform(size=(4, *model.image_encoder.input_shape[1:])).astype("float32"),
        "captions": rng.integers(1, 8, (8, 4)).astype("int32"),
        "image_labels": labels,
        "caption_labels": np.repeat(labels, 2),
        "semantic": rng.uniform(size=(4, 8)).astype("float32"),
    }
    batch = {key: tf.constant(value) for key, value in batch.items()}
    return tf.function(model.train_step, jit_compile=True), batch


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in FIRST else pytest.mark.very_slow) for n in SYSTEMS],
)
def test_no_shape_of_the_step_is_dynamic(name):
    step, batch = step_and_batch(name)
    program = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert "HloModule" in program
    assert "<=" not in program  # how a dimension is written that has a bound and no size
