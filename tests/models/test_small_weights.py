import json

import h5py
import numpy as np
import pytest

import zoo
from zoo.data.text.captions import WordTokenizer
from zoo.errors import InputError
from zoo.evaluation import probes_of
from zoo.models.points import save_points
from zoo.models.preset_folder import LEAST, shrink, widen


@pytest.fixture
def weights(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "model.weights.h5"
    arrays = {
        "layers/dense/vars/0": rng.normal(size=(256, 300)) * np.linspace(0.01, 3, 300),
        "layers/words/vars/0": rng.normal(size=(3000, 24)) * np.linspace(0.01, 3, 3000)[:, None],
        "layers/dense/vars/1": rng.normal(size=300),
        "layers/small/vars/0": rng.normal(size=(8, 8)),
        "layers/ones/vars/0": np.zeros((256, 300)),
        "layers/conv/vars/0": rng.normal(size=(1, 1, 256, 300)) * np.linspace(0.01, 3, 300),
    }
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values.astype("float32")
        file.attrs["keras_version"] = file["layers/dense"].attrs["name"] = "3"
    return path, {name: values.astype("float32") for name, values in arrays.items()}


def read(path):
    with h5py.File(path, "r") as file:
        return {
            name: file[name][()]
            for name in (
                "dense/vars/0",
                "words/vars/0",
                "dense/vars/1",
                "small/vars/0",
                "conv/vars/0",
            )
            for name in [f"layers/{name}"]
        }


def test_each_column_or_word_has_steps_of_its_own(weights, tmp_path):
    path, arrays = weights
    shrink(path, int8=True)
    assert path.stat().st_size < LEAST * 5
    widen(path, tmp_path / "wide.h5")
    with h5py.File(tmp_path / "wide.h5") as file:
        assert file.attrs["keras_version"] == file["layers/dense"].attrs["name"] == "3"
    found = read(tmp_path / "wide.h5")
    for name, axis in (("dense", 0), ("words", 1), ("conv", (0, 1, 2))):
        original = arrays[f"layers/{name}/vars/0"]
        steps = np.abs(original).max(axis=axis, keepdims=True) / 127
        errors = np.abs(found[f"layers/{name}/vars/0"] - original)
        assert (errors <= 0.51 * steps + 1e-3 * np.abs(original)).all()
    np.testing.assert_array_equal(found["layers/dense/vars/1"], arrays["layers/dense/vars/1"])
    assert found["layers/small/vars/0"].dtype == np.float16, "small ones are half as wide"


def test_many_arrays_take_little_more_than_their_numbers(tmp_path):
    path, numbers = tmp_path / "many.h5", np.random.default_rng(0).normal(size=(200, 150))
    with h5py.File(path, "w") as file:
        for place, values in enumerate(numbers.astype("float32")):
            file[f"layers/dense_{place}/vars/0"] = values
    shrink(path)
    assert path.stat().st_size < 200 * (4 * 150 + 800), "the oldest layout takes 3 kB more of each"


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    words = WordTokenizer([f"word{number}" for number in range(400)], max_words=4)
    model = zoo.models.pcme("tiny", words, dim=256, word_dim=300, image_size=16)
    zoo.save_preset(model, folder / "whole", half_precision="int8")
    save_points(folder / "points", "whole", {"system": "points"})
    return model, folder


def test_a_preset_of_int8_is_read_as_float32(presets):
    model, folder = presets
    with h5py.File(folder / "whole" / "model.weights.h5") as file:
        kinds = []
        file.visititems(lambda _, item: kinds.append(getattr(item, "dtype", None)))
    assert np.dtype("int8") in kinds
    loaded = zoo.from_preset(folder / "whole")
    texts = ["word1 word2", "word300"]
    found, expected = (np.asarray(one.encode_captions(texts).mean()) for one in (loaded, model))
    assert ((found * expected).sum(axis=1) > 0.995).all()
    assert not np.array_equal(found, expected)
    assert {weight.dtype for weight in loaded.weights} <= {"float32", "int64", "uint32", "string"}


def test_points_are_the_means_and_share_the_weights(presets, tmp_path):
    _, folder = presets
    points, whole = (zoo.from_preset(folder / name) for name in ("points", "whole"))
    np.testing.assert_allclose(
        points.encode_captions(["word1"]), whole.encode_captions(["word1"]).mean(), atol=1e-6
    )
    assert sum(path.stat().st_size for path in (folder / "points").iterdir()) < 5000
    with pytest.raises(InputError, match="exists already"):
        save_points(folder / "points", "whole", {})
    for named in ("nowhere", "../whole", 3, "..", "odd"):
        (tmp_path / "odd").mkdir(exist_ok=True)
        (tmp_path / "odd" / "points_of.json").write_text(json.dumps({"points_of": named}))
        with pytest.raises(InputError, match="expected `points_of` to name a preset"):
            zoo.from_preset(tmp_path / "odd")


def test_the_probes_of_points_are_the_means_of_the_others(presets):
    _, folder = presets
    rng = np.random.default_rng(0)
    sides = (
        {"mean": rng.normal(size=(5, 4)), "log_variance": rng.normal(size=(5, 4))} for _ in "ab"
    )
    labels = np.arange(5)
    probes = zoo.confidence.Probes.of(*sides, labels, labels, measure="total_variance")
    probes.save(folder / "whole" / "probes.npz")
    found = probes_of(folder / "points")
    assert list(found.images) == list(found.captions) == ["mean"]
    assert found.measure is None
    np.testing.assert_array_equal(found.images["mean"], probes.images["mean"])
