"""What `start` refuses, and what a run keeps to itself."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from zoo.data import Split
from zoo.data.records import Records
from zoo.data.sources import Pictures
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
