"""The ONNX towers of packaged presets: of their weights, and with Keras' vectors."""

import pickle

import numpy as np
import pytest

import halo_search
from halo_search import presets
from halo_search.towers import OnnxModel, packaged
from zoo.answering import KerasModel

NAMES = [name for name in presets.names() if presets.towers_of(name)]
CAPTIONS = [texts[0] for texts in halo_search.packaged_captions().values()][::17]
CAPTIONS += ["", "qwx zzxy", "a " * 100]


def test_they_come_with_the_presets_of_the_package():
    assert NAMES == ["photos_pfe", "toy_birds_pfe"]


@pytest.fixture(scope="module", params=NAMES)
def both(request):
    """The ONNX towers of a preset, and its Keras model."""
    return packaged(request.param), KerasModel.of(request.param)


@pytest.mark.parametrize("lean", [False, True])
def test_vectors_are_those_of_keras(both, lean):
    onnx, keras = both
    onnx = OnnxModel(onnx.folder, onnx.origin, lean)
    photos = halo_search.packaged_photos()[:6]
    pairs = [
        (onnx.tower("captions").of_texts(CAPTIONS), keras.tower("captions").of_texts(CAPTIONS)),
        (onnx.tower("images").of_files(photos), keras.tower("images").of_files(photos)),
    ]
    for result, expected in pairs:
        assert result.keys() == expected.keys()
        for key, values in expected.items():
            np.testing.assert_allclose(
                result[key], values, rtol=1e-4, atol=1e-4, err_msg="python -m tools.preset_towers"
            )


def test_facts_are_those_of_keras(both):
    onnx, keras = both
    for side in ("images", "captions"):
        tower, expected = onnx.tower(side), keras.tower(side)
        assert (tower.reads, tower.measure) == (expected.reads, expected.measure)
        if side == "images":
            assert (tower.image_size, tower.resizing) == (expected.image_size, expected.resizing)
        assert tower.model_sha256 == expected.model_sha256, "python -m tools.preset_towers"
    assert onnx.similarity == halo_search.index.scoring.portable(keras.similarity)


def test_a_tower_is_pickled_as_its_place(both):
    tower = both[0].tower("captions")
    data = pickle.dumps(tower)
    assert len(data) < 500
    vectors = [one.of_texts(["a red bird"])["mean"] for one in (tower, pickle.loads(data))]
    np.testing.assert_allclose(*vectors, rtol=1e-5, atol=1e-6)
