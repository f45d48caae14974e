import contextlib
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from halo_search.errors import InputError
from halo_search.files import locked
from recipes import own_pairs
from zoo.cli import parse
from zoo.data import Split
from zoo.data.records import Records
from zoo.data.records.features import cached
from zoo.data.records.sources import Pictures
from zoo.models.run_folder import RunFolder
from zoo.training import BestEpoch, RetrievalSettings, Run, Validation, run, start

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
    folder = tmp_path / "cache" / "features"

    def stored(pixels=None):
        if pixels is not None:
            keras.utils.save_img(path, np.full((8, 8, 3), pixels, "uint8"), scale=False)
        records = Records("one", [str(path)], ["grey"], [0], [0], [0])
        return float(cached(folder, backbone, records, Pictures(records, 8))[0].mean())

    assert stored(50) == 100
    assert stored(60) == 120
    assert stored() == 120
    assert len(list(folder.iterdir())) == 2


def test_data_are_described_by_what_is_asked_for_alone():
    described = parse(RetrievalSettings, ["--out=a"]).describe_data("cub", "toy_birds")
    assert described == {"loader": "toy_birds", "held_out": "test"}
    flags = ["--out=a", "--data-dir=b", "--skip-bad"]
    described = parse(RetrievalSettings, flags).describe_data("cub", "toy_birds")
    expected = {"loader": "cub", "root": "b", "held_out": "test", "skip_bad": True}
    assert described == expected


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
    start(settings, {**data, "root": str(tmp_path / "new")})


def test_a_phase_of_a_part_keeps_the_whole_model_as_its_callbacks_leave_it(tmp_path, monkeypatch):
    one, seen = Run(RunFolder.open(tmp_path / "run", {})), []
    one.model, one.keeps_best, one.validation = keras.Model(), True, "validation"
    monkeypatch.setattr(run, "check_rankings", lambda *_: None)
    monkeypatch.setattr(run, "fit_phase", lambda *given: seen.append(given))
    part, stream = keras.Model(), SimpleNamespace(steps_per_epoch=3)
    one.run_phase(part, "warm_up", stream, 2, callbacks=["own"])
    ((_, model, *_, callbacks, _, _),) = seen
    assert model is part
    assert callbacks[0] == "own"
    assert [type(callback) for callback in callbacks[1:]] == [Validation, BestEpoch]
    assert callbacks[2].complete_model is one.model


def test_a_run_ends_with_what_it_is_and_what_was_measured(monkeypatch):
    """The probes come from the validation split, the numbers from the test split."""
    given, told, waited = [], [], []
    evaluation = SimpleNamespace(
        measure=lambda reader, split, *_: ({"split": split}, "encoded"),
        calibrate_run=lambda *args, **more: given.append((*args, more)) or "confidence",
    )
    monkeypatch.setattr(run, "evaluation", evaluation)
    monkeypatch.setattr(run, "show_results", lambda _: None)
    best = {"phase": "training", "epoch": 2, "value": 3.0}
    folder = SimpleNamespace(
        save_model=lambda _: None, history_path=Path("none"), finish=told.append, path="run"
    )
    one = SimpleNamespace(
        execution=SimpleNamespace(is_chief=True, wait_for_all=lambda: waited.append(1)),
        locked=contextlib.nullcontext, trained=lambda: ("model", best), folder=folder,
        reader=lambda _: "reader", test="test", validation="validation", train="train", left_out=0,
    )  # fmt: skip
    assert run.finish(one) == told[0]
    assert told[0] == {
        "split": "test", "left_out": 0, "best_epoch": best, "confidence": "confidence"
    }  # fmt: skip
    more = {"complete_model": "model"}
    assert given == [(folder, "reader", "validation", "test", "encoded", "train", more)]
    assert waited == [1]


def test_data_that_are_not_there_leave_no_run_folder(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(InputError, match="nope"):
        own_pairs.main(["--data-dir", str(tmp_path / "nope"), "--out", str(out)])
    assert not out.exists()
    out.mkdir()
    (out / "notes").write_text("mine")
    with pytest.raises(InputError, match="holds notes, which this program did not write"):
        own_pairs.main(["--data-dir", str(tmp_path / "nope"), "--out", str(out)])
    assert (out / "notes").read_text() == "mine"
