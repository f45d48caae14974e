import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import released
import zoo
from export import export_model
from tiny_hub import siglip_pieces

TEXTS = ["a red bird", "Two DOGS, isn't it?", "bus_stop", ""]


@pytest.mark.slow
def test_a_saved_model_of_prolip_takes_strings_and_files(tmp_path):
    about, shapes, _ = released.described("prolip_tiny")
    folder = released.write(tmp_path / "hub", released.weights(shapes), about["config"])
    pieces = siglip_pieces(["a red bird two dogs isnt it bus stop"] * 3)
    (folder / "spiece.model").write_bytes(pieces)
    model = zoo.from_checkpoint(folder)
    folder = export_model(model, tmp_path / "served")
    served = tf.saved_model.load(str(folder)).signatures
    found = served["encode_captions"](tf.constant(TEXTS))
    np.testing.assert_allclose(found["mean"], model.encode_captions(TEXTS).mean(), atol=1e-5)
    pixels, stored = released.pixels(model.image_encoder.input_shape[1]), []
    for picture in pixels:
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "PNG")
        stored.append(file.getvalue())
    found = served["encode_images"](tf.constant(stored))
    np.testing.assert_allclose(found["mean"], model.encode_images(pixels).mean(), atol=1e-5)
