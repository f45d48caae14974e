"""Towers that come with a preset: those that a build would write, bound to the weights."""

import zipfile

import numpy as np
import pytest

import zoo
from tools import preset_towers
from zoo.models.presets import PACKAGED, shown_pictures
from zoo.retriever import packed_towers
from zoo.retriever.stored_towers import StoredTower

TEXTS = ["a red bird", "", "two dogs on a beach, and a boat", "un café " * 30]


@pytest.fixture(scope="module")
def packed(towers_once, tmp_path_factory):
    """A preset of birds with its towers, and its model."""
    folder = tmp_path_factory.mktemp("presets") / "birds"
    zoo.save_preset(zoo.from_preset("toy_birds_pfe"), folder, half_precision=True)
    preset_towers.main([str(folder)])
    return folder, zoo.from_preset(folder)


def unpacked(model, out, **resizing):
    out.mkdir()
    return packed_towers.unpack(model, resizing or shown_pictures(model, model.origin), out)


def compare(model, folder, sides):
    for side, facts in sides.items():
        tower = StoredTower(folder, side, facts)
        keras = zoo.Tower(model, side, mode=facts.get("mode"))
        if side == "captions":
            found, expected = tower.of_texts(TEXTS), keras.of_texts(TEXTS)
        else:
            photos = zoo.data.packaged_photos()[:3]
            pixels = np.stack([keras.fitted(photo) for photo in photos])  # of one decoder
            found, expected = tower.of_arrays(pixels), keras.of_arrays(pixels)
        for key, values in expected.items():
            np.testing.assert_allclose(found[key], values, rtol=1e-4, atol=1e-4)


def test_they_embed_as_keras(packed, tmp_path):
    _, model = packed
    sides = unpacked(model, tmp_path / "towers")
    assert set(sides) == {"images", "captions"}
    compare(model, tmp_path / "towers", sides)


def test_those_of_the_package_are_of_its_weights(tmp_path):
    assert (PACKAGED / "photos_pfe" / packed_towers.FILE).is_file()
    model = zoo.from_preset("photos_pfe")
    sides = unpacked(model, tmp_path / "towers")
    assert set(sides) == {"images", "captions"}, "run python -m tools.preset_towers again"
    compare(model, tmp_path / "towers", sides)


def test_what_is_not_of_the_model_is_not_taken(packed, tmp_path):
    folder, _ = packed
    model = zoo.from_preset(folder)
    assert unpacked(model, tmp_path / "crops", mode="another") is None
    weight = model.caption_encoder.weights[-1]
    weight.assign(weight + 1e-3)
    assert unpacked(model, tmp_path / "weights") is None
    model = zoo.from_preset("toy_birds_pcme")  # which has none
    assert unpacked(model, tmp_path / "none") is None


@pytest.mark.parametrize("damage", ["cut", "other data", "other numbers"])
def test_damaged_ones_are_made_again(packed, tmp_path, damage, monkeypatch):
    folder, model = packed
    whole = (folder / packed_towers.FILE).read_bytes()
    path = tmp_path / packed_towers.FILE
    path.write_bytes(whole[:-200] if damage == "cut" else whole)
    if damage == "other data":
        monkeypatch.setattr(packed_towers, "_write_data", lambda file, *_: file.write(b"0"))
    if damage == "other numbers":
        monkeypatch.setattr(packed_towers, "TOLERANCE", -1)
    monkeypatch.setattr(packed_towers, "preset_folder", lambda _: tmp_path)
    assert unpacked(model, tmp_path / "towers") is None
    assert not list((tmp_path / "towers").iterdir())
    if damage != "cut":
        assert zipfile.is_zipfile(path)
