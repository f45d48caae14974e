import pickle
import threading

import keras
import numpy as np
import pytest
from PIL import Image

import zoo
from pixel_model import SIZE, pixel_model
from zoo.errors import InputError
from zoo.models import Tower


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
    for tower in (Tower(model, "images"), Tower("toy_birds_pfe", "captions", batch_size=300)):
        data = pickle.dumps(tower)
        again = pickle.loads(data)
        ask = (lambda one: one.of_files(photos)) if tower.side == "images" else (
            lambda one: one.of_texts(["a red bird"])
        )  # fmt: skip
        for key, values in ask(tower).items():
            np.testing.assert_array_equal(ask(again)[key], values)
        assert again.batch_size == tower.batch_size
        assert (len(data) < 200) == (tower.model is not model)


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
