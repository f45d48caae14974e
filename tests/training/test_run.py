"""What `start` refuses, and what a run keeps to itself."""

import os
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from zoo.data import Split
from zoo.data.records import Records, provenance
from zoo.data.records.features import cached
from zoo.data.records.sources import Pictures
from zoo.errors import InputError
from zoo.files import RunFolder, locked
from zoo.training import RetrievalSettings, Run, start

BIRDS = {"loader": "toy_birds", "size": 3}


def test_one_process_trains_in_a_folder(tmp_path):
    run = Run(RunFolder.open(tmp_path / "run", {}))
    with (
        locked(tmp_path / "run"),
        pytest.raises(InputError, match="is training in"),
        run.replicas(),
    ):
        pass
    with run.replicas():  # free again
        pass


def test_a_worker_that_is_no_chief_does_not_lock(tmp_path):
    run = Run(RunFolder.open(tmp_path / "run", {}), SimpleNamespace(is_chief=False))
    with locked(tmp_path / "run"), run.locked():
        pass


def test_wrong_data_end_a_run_before_anything_is_trained(tmp_path):
    settings = RetrievalSettings(out=tmp_path / "run")
    with pytest.raises(InputError, match="unexpected keyword argument 'size'"):
        start(settings, BIRDS)


def test_a_finished_run_reads_no_data(tmp_path):
    settings = RetrievalSettings(out=tmp_path / "run")
    RunFolder.open(settings.out, settings, data=BIRDS).finish({})
    run = start(settings, BIRDS)
    assert run.finished
    assert run.train is None


def test_runs_share_the_features_of_a_frozen_backbone(tmp_path, monkeypatch):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.png"
    keras.utils.save_img(path, np.zeros((8, 8, 3)), scale=False)
    records = Records("one", [str(path)], ["black"], [0], [0], [0])
    split = Split(records, Pictures(records, 8))
    image = keras.Input((8, 8, 3))
    backbone = keras.Model(image, keras.layers.Conv2D(2, 3)(image))
    stored = []
    for name in ("one", "other"):
        run = Run(RunFolder.open(tmp_path / name, {}))
        run.train = run.validation = split
        stored.append([part.source.shape for part in run.stored_features(backbone)])
    assert stored == [[(6, 6, 2)] * 2] * 2
    assert len(list((tmp_path / "cache" / "features").iterdir())) == 1


def test_overwritten_pictures_get_features_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.png"
    image = keras.Input((8, 8, 3))
    backbone = keras.Model(image, keras.layers.Rescaling(2.0)(image))
    folder, hashed = tmp_path / "cache" / "features", []
    whole = provenance._hash
    monkeypatch.setattr(provenance, "_hash", lambda path: hashed.append(path) or whole(path))

    def stored(pixels=None):
        if pixels is not None:
            keras.utils.save_img(path, np.full((8, 8, 3), pixels, "uint8"), scale=False)
        records = Records("one", [str(path)], ["grey"], [0], [0], [0])
        return float(cached(folder, backbone, records, Pictures(records, 8))[0].mean())

    assert stored(50) == 100
    assert stored(60) == 120
    assert stored() == 120
    assert len(hashed) == 2
    os.utime(path, (1, 1))  # touched: its contents are the same
    assert stored() == 120
    assert len(hashed) == 3
    assert len(list(folder.iterdir())) == 2


@pytest.fixture
def own_photos(tmp_path, monkeypatch):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["image,caption,split"]
    for number in range(12):
        pixels = np.full((8, 8, 3), 20 * number, "uint8")
        keras.utils.save_img(folder / f"{number}.png", pixels, scale=False)
        split = ("train", "train", "val", "test")[number % 4]
        lines.append(f"{number}.png,a picture of {number},{split}")
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.usefixtures("undecoded")
def test_a_run_does_not_go_on_with_other_pictures(tmp_path, own_photos):
    settings = RetrievalSettings(out=tmp_path / "run")
    data = {"loader": "pairs", "root": str(own_photos), "image_size": 8}
    start(settings, data)
    start(settings, data)
    for path in own_photos.glob("*.png"):
        os.utime(path, (1, 1))
    start(settings, data)
    keras.utils.save_img(own_photos / "0.png", np.full((8, 8, 3), 9, "uint8"), scale=False)
    with pytest.raises(InputError, match="the images or captions of train have changed"):
        start(settings, data)


@pytest.mark.usefixtures("undecoded")
def test_a_run_does_not_go_on_with_other_captions(tmp_path, own_photos):
    settings = RetrievalSettings(out=tmp_path / "run")
    data = {"loader": "pairs", "root": str(own_photos), "image_size": 8}
    start(settings, data)
    table = own_photos / "pairs.csv"
    table.write_text(table.read_text().replace("a picture of 3", "another picture"))
    with pytest.raises(InputError, match="the images or captions of test have changed"):
        start(settings, data)


def test_vectors_that_have_moved_are_the_same_data(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    for name in ("images", "captions"):
        vectors = rng.normal(size=(40, 4)).astype("float32")
        np.save(tmp_path / "old" / f"{name}.npy", vectors)
    files = {name: str(tmp_path / "old" / f"{name}.npy") for name in ("images", "captions")}
    data, settings = {"loader": "vectors", **files}, RetrievalSettings(out=tmp_path / "run")
    start(settings, data)
    for path in (tmp_path / "old").iterdir():
        path.rename(tmp_path / "new" / path.name)
    moved = {**data, "root": str(tmp_path / "new")}
    start(settings, moved)
    np.save(tmp_path / "new" / "images.npy", np.ones((40, 4), "float32"))
    with pytest.raises(InputError, match="the images or captions of train, validation, test have"):
        start(settings, moved)
