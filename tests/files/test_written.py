import os
import shutil

import keras
import numpy as np
import pytest

from zoo.errors import InputError
from zoo.files.written import Written
from zoo.models.run_folder import RunFolder
from zoo.training.resume import Resume

FOREIGN = "which this program did not write"


def test_a_name_is_listed_before_it_is_made_and_nothing_else_is_removed(tmp_path):
    written = Written(tmp_path / "out")
    written.claim("a.txt", "folder")
    for name in ("a.txt", "b.txt"):
        (tmp_path / "out" / name).write_text(name)
    (tmp_path / "out" / "folder").mkdir()
    assert written.names == {"a.txt", "folder"}
    assert written.foreign() == ["b.txt"]
    written.remove(["a.txt", "b.txt", "folder", "never"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["b.txt", "written.json"]
    assert written.names == set()


def test_what_is_not_listed_stops_a_claim_before_anything_is_written(tmp_path):
    (tmp_path / "table.csv").write_text("mine")
    written = Written(tmp_path)
    with pytest.raises(InputError, match=rf"holds table\.csv, {FOREIGN}; choose another"):
        written.claim("table.csv", "other.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    with pytest.raises(InputError, match=r"holds table\.csv"):
        written.check()


def test_our_own_leftovers_are_removed_and_only_here(tmp_path):
    written = Written(tmp_path)
    written.claim("index")
    half, own = ".tmp-0123456789abcdef-a.npy", (tmp_path / "index", tmp_path)
    for folder in (*own, tmp_path / "mine"):
        folder.mkdir(exist_ok=True)
        (folder / half).write_bytes(b"half")
        os.utime(folder / half, (0, 0))  # nobody has written to it for an hour
    (tmp_path / ".tmp-notes").write_bytes(b"mine")
    written.tidy()
    assert not any((folder / half).exists() for folder in own)
    assert (tmp_path / "mine" / half).exists()
    assert (tmp_path / ".tmp-notes").exists()


def test_a_run_that_is_discarded_leaves_what_others_put_there(tmp_path):
    run = RunFolder.open(tmp_path / "run", {})
    run.discard()
    assert not run.path.exists()
    run = RunFolder.open(tmp_path / "run", {})
    (run.path / "notes.txt").write_text("mine")
    run.discard()
    assert [path.name for path in run.path.iterdir()] == ["notes.txt"]


def test_a_start_that_was_killed_starts_again(tmp_path):
    run = RunFolder.open(tmp_path / "run", {"seed": 0})
    run.config_path.unlink()
    assert RunFolder.open(tmp_path / "run", {"seed": 1}).settings == {"seed": 1}


def test_checkpoints_of_others_stay(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, folder = np.ones((4, 2)), tmp_path / "checkpoints"
    folder.mkdir()
    kept = folder / "train-00000.npz"
    kept.write_bytes(b"mine")
    resume = Resume(folder)
    model.fit(x, x[:, :1], epochs=3, verbose=0, callbacks=[resume])
    there = {path.name for path in folder.glob("*.npz")}
    assert there == {kept.name, *(f"{resume.phase}-0000{n}.npz" for n in (2, 3))}
    shutil.copy(kept, folder / f"{resume.phase}-00004.npz")
    with pytest.raises(InputError, match=f"holds {resume.phase}-00004.npz, {FOREIGN}"):
        resume.save(4)
    assert (folder / f"{resume.phase}-00004.npz").read_bytes() == b"mine"
