import pytest

import memory

STEP = """
import sys
import keras
import numpy as np
import tensorflow as tf
import zoo
from zoo import encoders, losses, training
builder = sys.argv[1]
rng = np.random.default_rng(0)
if builder == "pcmepp":
    image, text = encoders.clip_image("vit_b_32"), encoders.clip_text("vit_b_32")
    model = zoo.models.pcmepp(image, caption_backbone=text)
    assert image.output["features"].shape == (None, 50, 768)
    assert image.output["variance_features"].shape == (None, 50, 768)
    assert text.output["features"].shape == (None, 77, 512)
    rates = training.dual_encoder_rates(model)
    assert len(set(rates.values())) == 24, "12 blocks of each tower, the last as all outside"
    model.compile(
        training.LayerwiseAdamP(5e-4, rates=rates, weight_decay=1e-4, global_clipnorm=2.0)
    )
    images = rng.uniform(0, 255, (4, 224, 224, 3)).astype("float32")
    captions = rng.integers(1, 49000, (4, 77)).astype("int32")
    captions[:, 20], captions[:, 21:] = 49407, 0
else:
    build = getattr(zoo.models, builder)
    model = build((36, 2048), vocabulary_size=8000, max_length=32, dim=2048)
    model.compile(keras.optimizers.Adam(2e-4), loss=losses.TripletRanking(0.2))
    images = rng.random((128, 36, 2048), dtype="float32")
    captions = rng.integers(1, 8000, (128, 32)).astype("int32")
labels = np.arange(len(images), dtype="int32")
batch = {"images": images, "captions": captions, "image_labels": labels, "caption_labels": labels}
history = model.fit(tf.data.Dataset.from_tensors(batch), verbose=0).history
print("LOSS", history["loss"][0], "PARAMETERS", model.count_params())
"""


@pytest.mark.very_slow
@pytest.mark.parametrize(
    ("builder", "most"),
    # Of two GRUs, whose backward loops run at once or not; see docs/results/speed.md.
    [("vsepp", 3.0), ("gaussian_vsepp", 6.0), ("vsrn", 4.5), ("pcmepp", 6.0)],
)
def test_a_step_at_the_size_of_the_paper(builder, most):
    printed, peak = memory.run(STEP, builder)
    found = printed.split()
    loss = float(found[found.index("LOSS") + 1])
    assert loss > 0
    assert builder != "pcmepp" or loss < 100
    assert peak <= most, printed
