"""PCME against the outputs of its official code."""

import numpy as np
import pytest

import released
import zoo
from zoo.encoders.point_towers import resizing_of_tower


def build(name, tmp_path):
    _, shapes, outputs = released.described(name)
    arrays = released.weights(shapes)
    arrays |= {
        "criterion.negative_scale": np.array([6.5], "float32"),
        "criterion.shift": np.array([5.25], "float32"),
    }
    return zoo.from_checkpoint(released.write(tmp_path / name, arrays)), outputs


@pytest.mark.very_slow
@pytest.mark.parametrize("name", ["pcme_resnet50", "pcme_resnet152"])
def test_it_is_the_official_model(name, tmp_path):
    model, outputs = build(name, tmp_path)
    released.check_gaussian(
        model.image_encoder,
        released.pixels(224),
        outputs["image_features"],
        2 * outputs["image_logsigma"],
    )
    ids = outputs["texts"].astype("int32")
    released.check_gaussian(
        model.caption_encoder, ids, outputs["caption_features"], 2 * outputs["caption_logsigma"]
    )
    # p = sigmoid(2x) as released
    assert float(model.similarity.scale) == 13.0
    assert float(model.similarity.shift) == 10.5
    assert resizing_of_tower(model.image_encoder) == {"mode": "crop", "crop_fraction": 224 / 256}
