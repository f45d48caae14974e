import json

import keras
import numpy as np
import pytest

import zoo
from zoo.data.captions import WordTokenizer
from zoo.errors import InputError


@pytest.fixture(scope="module")
def model():
    tokenizer = WordTokenizer(["bird", "red"], max_words=4)
    return zoo.models.pcme("tiny", tokenizer, dim=4, word_dim=4, image_size=16)


def test_saved_and_read_back(model, tmp_path):
    zoo.save_preset(model, tmp_path / "mine", {"system": "pcme"})
    loaded = zoo.from_preset(tmp_path / "mine")
    np.testing.assert_array_equal(
        model.encode_captions("red bird").mean(), loaded.encode_captions("red bird").mean()
    )
    assert json.loads((tmp_path / "mine" / "preset.json").read_text()) == {
        "name": "mine",
        "system": "pcme",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_presets_are_not_overwritten(model, tmp_path):
    zoo.save_preset(model, tmp_path / "mine")
    with pytest.raises(InputError, match=r"mine: exists already"):
        zoo.save_preset(model, tmp_path / "mine")


def test_a_failed_save_leaves_nothing(model, tmp_path):
    with pytest.raises(TypeError):
        zoo.save_preset(model, tmp_path / "mine", {"card": object()})
    assert not list(tmp_path.iterdir())


def test_what_is_no_preset_is_named(tmp_path):
    with pytest.raises(InputError, match=r"toy_birds_pcme.*nowhere"):
        zoo.from_preset(tmp_path / "nowhere")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.keras").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(InputError, match=r"broken.model\.keras: not a model"):
        zoo.from_preset(broken)
    other = tmp_path / "other"
    other.mkdir()
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(other / "model.keras")
    with pytest.raises(InputError, match="expected a DualEncoder, received Sequential"):
        zoo.from_preset(other)


def test_the_packaged_preset_loads_and_knows_red_from_blue():
    name = "toy_birds_pcme"
    card = zoo.list_presets()[name]
    assert card["system"] == "pcme"
    assert card["command"].startswith("python recipes/pcme_cub.py")
    folder = zoo.models.presets.PACKAGED / name
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 5_000_000
    model = zoo.from_preset(name)
    vague, exact = (
        "a bird with a short bill.",
        "a small red bird with a black crown, white wing bars, a yellow belly and a long bill",
    )
    uncertainty = np.asarray(model.uncertainty(model.encode_captions([vague, exact])))
    assert uncertainty[0] > uncertainty[1]
