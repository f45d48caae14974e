"""Every system's export equals its Keras model where neither Keras nor the zoo can be imported."""

import json
import os
import pathlib

import numpy as np
import pytest
from scipy.special import expit

import tiny_models
from export import export_model
from halo_search.embeddings.arrays import as_arrays
from halo_search.embeddings.spaces import SPACES
from processes import python
from zoo import embeddings
from zoo.data import captions, sources

# In `make test` test_matrix.py runs every system's signatures in its own process, test_features.py
# exports points, sets and what has no index, and test_layout.py runs an export without the zoo.
pytestmark = pytest.mark.very_slow
SCRIPT = pathlib.Path(__file__).parents[1] / "helpers" / "fresh_process.py"
TOLERANCE = 1e-5  # of the largest value of an output


def expected_outputs(model, birds):
    """Requests, and what the Keras model makes of them *through the training pipeline*."""
    pictures = sources.Pictures(birds.records, tiny_models.SIZE, cache=False)
    batches = list(pictures.in_order(tiny_models.COUNT).take(1))
    ids = captions.token_ids(birds.tokenizer, birds.captions)
    sides = {
        "images": model.image_encoder(batches[0].numpy().astype("float32"), training=False),
        "captions": model.caption_encoder(ids, training=False),
    }
    arrays = {
        "images": np.array(birds.files, object),
        "captions": np.array([text.encode() for text in birds.captions], object),
        "pixels": batches[0].numpy().astype("float32"),
    }
    for side, embedding in sides.items():
        outputs = {key: np.asarray(value) for key, value in embedding.items()}
        if embeddings.has_uncertainty(embedding):
            outputs["uncertainty"] = np.asarray(model.uncertainty(embedding))
        names = [f"encode_{side}"] + ["encode_pixels", "serving_default"] * (side == "images")
        for name in names:
            arrays |= {f"{name}/{key}": value for key, value in outputs.items()}
        arrays |= {f"match/{side[:-1]}_{key}": value for key, value in outputs.items()}
        if model.similarity.space is None:  # cross-attention has no vectors to search by
            continue
        space = SPACES[model.similarity.space_for(embeddings.kind(embedding))]
        checked = as_arrays(embedding)
        shape = outputs["elements"].shape if "elements" in outputs else (tiny_models.COUNT, -1)
        outputs["gallery"] = space.gallery(checked).reshape(shape)
        outputs["query"] = space.queries(checked).reshape(shape)
        if space.offset:
            outputs["offset"] = space.offset(checked)
        arrays |= {f"index_{side}/{key}": value for key, value in outputs.items()}
    similarity = np.asarray(model.similarity(sides["images"], sides["captions"]))
    if model.gives_match_probability:
        arrays["match/probability"] = expit(similarity)
    return arrays | {"match/similarity": similarity, "match/pairs": np.int32(similarity.size)}


@pytest.fixture(scope="module")
def differences(birds, pcme, tmp_path_factory):
    """The differences of the exports of all systems, and of one image model alone.

    They run in one process, since importing TensorFlow takes longer than running them.
    """
    folder = tmp_path_factory.mktemp("fresh")
    path = export_model(pcme.model, folder / "image_only", image_only=True)
    exports = {"pcme": (pcme.model, pcme.folder), "image_only": (pcme.model, path)}
    for name in tiny_models.BUILDERS:
        if name != "pcme":
            model = tiny_models.tiny(name, birds.tokenizer)
            exports[name] = model, export_model(model, folder / name)
    return run_in_fresh_process(folder, exports, birds)


def run_in_fresh_process(folder, exports, birds):
    manifest = {}
    for name, (model, path) in exports.items():
        requests = folder / f"{id(model)}.npz"  # of one model once
        if not requests.exists():
            np.savez(requests, **expected_outputs(model, birds))
        manifest[name] = {
            "folder": str(path),
            "loads_with": json.loads((path / "export.json").read_text())["loads_with"],
            "requests": str(requests),
        }
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = python(SCRIPT, json.dumps(manifest), cwd=folder, env=bare)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", tiny_models.BUILDERS)
def test_every_signature_equals_the_keras_model(differences, name):
    found = differences[name]
    signatures = {key.split("/")[0] for key in found}
    expected = {"serving_default", "encode_images", "encode_pixels", "encode_captions", "match"}
    if name != "sgraf":
        expected |= {"index_images", "index_captions"}
    assert signatures == expected
    assert all(value is not None and value <= TOLERANCE for value in found.values()), found


def test_the_image_model_alone_loads_with_tensorflow_alone(differences):
    found = differences["image_only"]
    assert {key.split("/")[0] for key in found} == {
        "serving_default",
        "encode_images",
        "encode_pixels",
        "index_images",
    }
    assert max(found.values()) <= TOLERANCE
