"""VSE++ and VSRN at the sizes of the papers take a training step in the memory that is stated."""

import pytest

import memory

STEP = """
import sys
import keras
import numpy as np
import tensorflow as tf
import zoo
from zoo import losses
builder, dim = sys.argv[1], 2048
model = getattr(zoo.models, builder)((36, 2048), vocabulary_size=8000, max_length=32, dim=dim)
model.compile(keras.optimizers.Adam(2e-4), loss=losses.TripletRanking(0.2))
rng = np.random.default_rng(0)
labels = np.arange(128, dtype="int32")
batch = {
    "images": rng.random((128, 36, 2048), dtype="float32"),
    "captions": rng.integers(1, 8000, (128, 32)).astype("int32"),
    "image_labels": labels,
    "caption_labels": labels,
}
history = model.fit(tf.data.Dataset.from_tensors(batch), verbose=0).history
print("LOSS", history["loss"][0], "PARAMETERS", model.count_params())
"""


@pytest.mark.very_slow
@pytest.mark.parametrize(
    ("builder", "most"),
    # Of two GRUs, whose backward loops run at once or not; see docs/results/speed.md.
    [("vsepp", 3.0), ("gaussian_vsepp", 6.0), ("vsrn", 4.5)],
)
def test_a_step_at_the_size_of_the_paper(builder, most):
    printed, peak = memory.run(STEP, builder)
    found = printed.split()
    assert float(found[found.index("LOSS") + 1]) > 0
    assert peak <= most, printed
