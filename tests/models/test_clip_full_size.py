"""PCME++ as in the paper: ViT-B/32 at 224 pixels takes a training step in little memory."""

import pytest

import memory

STEP = """
import numpy as np
import tensorflow as tf
import zoo
from zoo import encoders, training
image = encoders.clip_image("vit_b_32")
text = encoders.clip_text("vit_b_32")
model = zoo.models.pcmepp(image, caption_backbone=text)
assert image.output["features"].shape == (None, 50, 768)
assert image.output["variance_features"].shape == (None, 50, 768)
assert text.output["features"].shape == (None, 77, 512)
rates = training.dual_encoder_rates(model)
assert len(set(rates.values())) == 24, "12 blocks of each tower, the last as all outside of them"
model.compile(training.LayerwiseAdamP(5e-4, rates=rates, weight_decay=1e-4, global_clipnorm=2.0))
rng = np.random.default_rng(0)
captions = rng.integers(1, 49000, (4, 77)).astype("int32")
captions[:, 20], captions[:, 21:] = 49407, 0
batch = {
    "images": rng.uniform(0, 255, (4, 224, 224, 3)).astype("float32"),
    "captions": captions,
    "image_labels": np.arange(4, dtype="int32"),
    "caption_labels": np.arange(4, dtype="int32"),
}
history = model.fit(tf.data.Dataset.from_tensors(batch), verbose=0).history
print("LOSS", history["loss"][0], "PARAMETERS", model.count_params())
"""


@pytest.mark.very_slow
def test_vit_b_32_takes_a_training_step_in_six_gib():
    printed, peak = memory.run(STEP)
    found = printed.split()
    assert 0 < float(found[found.index("LOSS") + 1]) < 100
    assert peak <= 6.0, printed
