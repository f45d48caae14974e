"""A tiny ProLIP and a tiny SigLIP are ordinary models: presets, other processes, exports."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import released
import zoo
from export import export_model
from export.onnx_towers import export_onnx
from hugging_face import write_siglip
from tiny_hub import siglip_pieces, tiny_hub

TEXTS = ["a red bird", "Two DOGS, isn't it?", "bus_stop", ""]


def prolip(folder):
    about, shapes, _ = released.described("prolip_tiny")
    released.write(folder, released.weights(shapes), about["config"])
    pieces = siglip_pieces(["a red bird two dogs isnt it bus stop"] * 3)
    (folder / "spiece.model").write_bytes(pieces)
    return zoo.from_checkpoint(folder)


def siglip(folder):
    write_siglip(*tiny_hub("siglip"), folder)
    return zoo.from_preset(folder)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(prolip, id="prolip"),
        pytest.param(siglip, id="siglip", marks=pytest.mark.very_slow),
    ],
)
def model(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("hub"))


def answers(model):
    size = model.image_encoder.input_shape[1]
    images, captions = model.encode_images(released.pixels(size)), model.encode_captions(TEXTS)
    found = {"logits": np.asarray(model.similarity(images, captions))}
    if model.name == "prolip":
        found["variances"] = captions.variance().numpy()
        images, captions = images.mean(), captions.mean()
    return {**found, "images": np.asarray(images), "captions": np.asarray(captions)}


REOPEN = """
import sys
sys.path[:0] = sys.argv[3:]
import numpy as np
import zoo
from test_everywhere import answers
for name in sys.argv[1:3]:
    np.savez(f"{name}.npz", **answers(zoo.from_preset(name)))
"""


@pytest.mark.very_slow  # another process imports everything again
def test_presets_by_relative_and_absolute_paths_in_another_process(model, tmp_path, monkeypatch):
    expected = answers(model)
    monkeypatch.chdir(tmp_path)
    zoo.save_preset(model, "relative/preset")
    zoo.save_preset(model, tmp_path / "absolute")
    here = [str(released.TESTS / name) for name in ("checkpoints", "helpers")]
    names = ["relative/preset", str(tmp_path / "absolute")]
    code = [sys.executable, "-c", REOPEN, *names, *here, str(released.TESTS.parent)]
    subprocess.run(code, check=True, cwd=tmp_path)
    for name in names:
        with np.load(f"{name}.npz") as found:
            for key, values in expected.items():
                np.testing.assert_allclose(found[key], values, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_saved_model_takes_strings_and_files(model, tmp_path):
    folder = export_model(model, tmp_path / "served")
    served = tf.saved_model.load(str(folder)).signatures
    expected = answers(model)
    found = served["encode_captions"](tf.constant(TEXTS))
    np.testing.assert_allclose(found["mean"], expected["captions"], atol=1e-5)
    stored = []
    for picture in released.pixels(model.image_encoder.input_shape[1]):
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "PNG")
        stored.append(file.getvalue())
    found = served["encode_images"](tf.constant(stored))
    np.testing.assert_allclose(found["mean"], expected["images"], atol=1e-5)


@pytest.mark.slow
def test_onnx_gives_the_same(model, tmp_path):
    pytest.importorskip("tf2onnx")
    out = export_onnx(model, tmp_path / "onnx")
    facts = json.loads((out / "export.json").read_text(encoding="utf-8"))
    assert max(facts["largest_errors"].values()) <= 1e-5
    assert set(facts["towers"]) == {"images", "captions"}
