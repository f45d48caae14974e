"""VSE++ and VSRN at the sizes of the papers take a training step in the memory that is stated."""

import subprocess
import sys

import pytest

STEP = """
import resource, sys
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
print("PEAK_GIB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.very_slow
@pytest.mark.parametrize(
    ("builder", "most"),
    [("vsepp", 3.0), ("gaussian_vsepp", 3.0), ("vsrn", 4.5)],  # see docs/models/gaussian_vse.md
)
def test_a_step_at_the_size_of_the_paper(builder, most):
    done = subprocess.run(
        [sys.executable, "-c", STEP, builder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.split()
    assert float(found[found.index("LOSS") + 1]) > 0
    assert float(found[found.index("PEAK_GIB") + 1]) <= most, done.stdout
