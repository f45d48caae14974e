import json
import pickle
import threading
from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest
from PIL import Image

import halo_search
import zoo
from halo_search import open_tower
from halo_search.errors import InputError
from pixel_model import SIZE, pixel_model
from zoo.data.text.captions import WordTokenizer
from zoo.evaluation import probes_of
from zoo.models import Tower
from zoo.models import tower as tower_file
from zoo.models.points import save_points
from zoo.models.preset_folder import LEAST, shrink, widen


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    paths = [folder / f"{row}.png" for row in range(11)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (9, 13, 3), dtype=np.uint8)).save(path)
    return paths


@pytest.fixture(scope="module")
def model():
    return pixel_model()


def test_texts_and_ids_give_what_encode_captions_gives(model):
    texts = ["a photo", "photo", ""] * 100
    tower = Tower(model, "captions")
    expected = np.asarray(model.encode_captions(texts))
    np.testing.assert_array_equal(tower.of_texts(texts)["mean"], expected)
    np.testing.assert_array_equal(tower.of_arrays(model.tokenize(texts))["mean"], expected)
    np.testing.assert_array_equal(tower.of_texts("a photo")["mean"], expected[:1])


def test_vectors():
    towers = [zoo.encoders.vectors(6), zoo.encoders.vectors(5)]
    model = zoo.models.infonce(towers[0], caption_backbone=towers[1], dim=4)
    rows = np.random.default_rng(0).normal(size=(7, 5)).astype("float32")
    tower = Tower(model, "captions")
    assert (tower.reads, tower.dim) == ("vectors", 5)
    expected = np.asarray(model.encode_captions(rows))
    np.testing.assert_allclose(tower.of_vectors(rows)["mean"], expected, atol=1e-6)
    with pytest.raises(InputError, match=r"expected vectors of 5 channels.*captions; received"):
        tower.of_vectors(rows[:, :3])
    with pytest.raises(InputError, match="the model reads vectors for captions, not pictures"):
        tower.of_files(["a.jpg"])


def test_what_cannot_be_read_is_named_or_left_out(photos, model, tmp_path):
    tower = Tower(model, "images", batch_size=3)
    (tmp_path / "broken.png").write_bytes(photos[0].read_bytes()[:-30])
    files = [*photos[:2], tmp_path / "broken.png", tmp_path / "none.png", *photos[2:]]
    with pytest.raises(InputError, match=r"broken\.png: a damaged image"):
        tower.of_files(files)
    with pytest.raises(InputError, match="second: an empty file"):
        tower.of_files([photos[0], b""], names=["first", "second"])
    with pytest.raises(InputError, match="item 1: an empty file"):
        tower.of_files([photos[0], b""])
    rejected, counts = {}, []
    found = tower.of_files(files, progress=counts.append, rejected=rejected)
    assert rejected == {2: "a damaged image", 3: "No such file or directory"}
    assert sum(counts) == len(files)
    np.testing.assert_array_equal(found["mean"], tower.of_files(photos)["mean"])
    rejected = {}
    assert tower.of_files([b"", b""], rejected=rejected) == {}
    assert rejected == {0: "an empty file", 1: "an empty file"}
    with pytest.raises(ValueError, match="at least one item"):
        tower.of_files([])
    with pytest.raises(InputError, match="no tokenizer, so it cannot be asked in words"):
        Tower(zoo.models.DualEncoder(*[keras.Sequential([keras.Input((4, 4, 3))])] * 2, None),
              "captions").of_texts(["a bird"])  # fmt: skip
    with pytest.raises(ValueError, match="`side` must be one of"):
        Tower(model, "texts")


def test_it_is_pickled_with_its_model_or_as_its_name(photos, model):
    for tower in (Tower(model, "images"), open_tower("toy_birds_pfe", "captions", 300)):
        data = pickle.dumps(tower)
        again = pickle.loads(data)
        ask = (lambda one: one.of_files(photos)) if tower.side == "images" else (
            lambda one: one.of_texts(["a red bird"])
        )  # fmt: skip
        for key, values in ask(tower).items():
            np.testing.assert_array_equal(ask(again)[key], values)
        assert again.batch_size == tower.batch_size
        assert (len(data) < 200) == (tower.side == "captions")


def test_it_is_compiled_once_for_any_batch_size_and_thread(model):
    traced = []

    class Noted(keras.layers.Layer):
        def call(self, inputs):
            traced.append(1)
            return inputs

    image = keras.Input((SIZE, SIZE, 3))
    encoder = keras.Model(image, {"mean": keras.layers.Flatten()(Noted()(image))})
    tower = Tower(model.with_image_encoder(encoder), "images")
    traced.clear()
    pixels = np.random.default_rng(0).integers(0, 256, (9, SIZE, SIZE, 3), dtype=np.uint8)
    found = {}

    def ask(count):
        found[count] = tower.of_arrays(pixels[:count])["mean"]

    threads = [threading.Thread(target=ask, args=(count,)) for count in range(1, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traced) == 1
    for count, values in found.items():
        np.testing.assert_array_equal(values, pixels[:count].reshape(count, -1))


def test_memory_does_not_grow_with_the_number_of_files(photos, model):
    tower = Tower(model, "images", batch_size=2)
    alive, most, lock = [0], [0], threading.Lock()
    fitted = tower.fitted

    def counted(file):
        with lock:
            alive[0] += 1
            most[0] = max(most[0], alive[0])
        return fitted(file)

    tower.fitted = counted
    tower.of_files(photos * 3, progress=lambda count: alive.__setitem__(0, alive[0] - count))
    assert most[0] <= 4


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
    probes = halo_search.confidence.Probes.of(*sides, labels, labels, measure="total_variance")
    probes.save(folder / "whole" / "probes.npz")
    found = probes_of(folder / "points")
    assert list(found.images) == list(found.captions) == ["mean"]
    assert found.measure is None
    np.testing.assert_array_equal(found.images["mean"], probes.images["mean"])


def test_workers_of_a_cluster_encode_each_for_itself(monkeypatch):
    encoder = SimpleNamespace(distribute_strategy=SimpleNamespace(num_replicas_in_sync=2))
    for spans, expected in ((False, encoder.distribute_strategy), (True, None)):
        monkeypatch.setattr(tower_file, "spans_workers", lambda _, spans=spans: spans)
        assert tower_file._strategy_of(encoder) is expected
