import errno
import gzip
import math
import os
import subprocess
import sys
from dataclasses import dataclass, replace

import keras
import numpy as np
import pytest

from halo_search.errors import InputError
from halo_search.files.atomic import atomic, atomic_folder, write_text
from halo_search.files.json_files import read_json
from zoo.cli import setting
from zoo.models.run_folder import RunFolder
from zoo.training.settings import RunSettings


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    epochs: int = setting(3)
    sizes: tuple[int, ...] = (7, 9)


def test_a_new_run_then_the_same_run_then_another(tmp_path):
    folder = tmp_path / "runs" / "a"
    run = RunFolder.open(folder, Settings(out=folder))
    assert run.settings["epochs"] == 3
    assert run.config["versions"]["keras"] == keras.__version__
    assert run.plots.is_dir()
    assert run.checkpoints.is_dir()
    assert not run.finished
    assert run.metrics is None

    again = RunFolder.open(folder, Settings(out=folder / ".." / "a", strategy="mirrored"))
    assert again.config == run.config
    (folder / "history.csv").write_text("epoch\n")  # something was trained

    with pytest.raises(InputError, match=r"epochs was 3 and is now 4.*--out") as caught:
        RunFolder.open(folder, replace(Settings(), epochs=4))
    assert "sizes" not in str(caught.value)


def test_settings_may_change_until_something_is_trained(tmp_path):
    folder = tmp_path / "run"
    RunFolder.open(folder, replace(Settings(), epochs=2), data={"loader": "toy_birds"})
    other = {"loader": "pairs", "root": "photos"}
    again = RunFolder.open(folder, replace(Settings(), epochs=4), data=other)
    assert again.settings["epochs"] == 4
    assert again.data == other
    (folder / "skipped.jsonl").write_text("")
    assert RunFolder.open(folder, replace(Settings(), epochs=5)).settings["epochs"] == 5
    for name in ("checkpoints/train.npz", "history.csv", "model.keras", "metrics.json"):
        (folder / name).write_text("")
        with pytest.raises(InputError, match="epochs was 5 and is now 6"):
            RunFolder.open(folder, replace(Settings(), epochs=6))
        (folder / name).unlink()
    assert RunFolder.open(folder, replace(Settings(), epochs=6)).settings["epochs"] == 6


def test_settings_do_not_change_below_a_run_that_trains(tmp_path):
    RunFolder.open(tmp_path / "run", Settings())
    script = f"""
import sys
from halo_search.files.atomic import locked
with locked({str(tmp_path / "run")!r}):
    print("holds it", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "holds it\n"
        with pytest.raises(InputError, match="another process is training"):
            RunFolder.open(tmp_path / "run", replace(Settings(), epochs=4))
        other.stdin.close()
    assert RunFolder.open(tmp_path / "run", Settings()).settings["epochs"] == 3


def test_finish_is_the_mark_of_a_finished_run_and_json_is_strict(tmp_path):
    run = RunFolder.open(tmp_path / "a", {"seed": 0})
    run.finish({"rsum": np.float32(1.5), "bins": np.arange(3), "undefined": math.nan})
    text = (tmp_path / "a" / "metrics.json").read_text()
    assert "NaN" not in text
    assert RunFolder.existing(tmp_path / "a").finished
    assert run.metrics == {"rsum": 1.5, "bins": [0, 1, 2], "undefined": None}


def test_what_is_no_run_folder_is_said(tmp_path):
    with pytest.raises(InputError, match="no such run folder"):
        RunFolder.existing(tmp_path / "missing")
    (tmp_path / "photos").mkdir()
    with pytest.raises(InputError, match=r"no config\.json"):
        RunFolder.existing(tmp_path / "photos")
    (tmp_path / "photos" / "bird.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"holds bird\.jpg, which this program did not"):
        RunFolder.open(tmp_path / "photos", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        RunFolder.open(tmp_path / "file", {})
    with pytest.raises(InputError, match="cannot write"):
        RunFolder.open(tmp_path / "file" / "below", {})
    run = RunFolder.open(tmp_path / "run", {})
    run.config_path.write_text('{"settings"')
    with pytest.raises(InputError, match="not valid JSON"):
        RunFolder.open(tmp_path / "run", {})


def test_a_failed_write_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "metrics.json"
    write_text(path, "old")

    def write_half():
        with atomic(path) as temporary:
            temporary.write_text("ne")
            raise RuntimeError("died")

    with pytest.raises(RuntimeError, match="died"):
        write_half()
    assert path.read_text() == "old"
    with pytest.raises(InputError, match=r"metrics\.json: No space left"), atomic(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]


def test_a_folder_is_whole_or_not_there(tmp_path):
    path = tmp_path / "new" / "set"

    def fill_half():
        with atomic_folder(path) as unfinished:
            (unfinished / "half").write_text("x")
            raise RuntimeError("died")

    with pytest.raises(RuntimeError, match="died"):
        fill_half()
    assert not list(path.parent.iterdir())
    with atomic_folder(path) as unfinished:
        assert unfinished.parent.name.startswith(".tmp-")
        (unfinished / "whole").write_text("x")
        assert not path.exists()
    assert [one.name for one in path.iterdir()] == ["whole"]
    assert path.stat().st_mode & 0o777 == 0o755
    with pytest.raises(InputError, match="set: another process has just written there"):  # noqa: SIM117
        with atomic_folder(path) as unfinished:
            (unfinished / "other").write_text("x")
    assert [one.name for one in path.parent.iterdir()] == ["set"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), atomic_folder(tmp_path / "file/set"):
        pass


def test_json_is_read_in_one_way(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"a": [1]}'))
    assert read_json(path) == {"a": [1]}
    path.write_bytes(gzip.compress(b'{"a":\n[1}'))
    with pytest.raises(InputError, match=r"a\.json\.gz:2: this is not valid JSON"):
        read_json(path)
    path.write_bytes(gzip.compress(b'{"a": 1}')[:-9])
    with pytest.raises(InputError, match=r"a\.json\.gz"):
        read_json(path)
    (tmp_path / "b.json").write_bytes(b'"\xff"')
    with pytest.raises(InputError, match=r"b\.json: expected UTF-8"):
        read_json(tmp_path / "b.json")
    with pytest.raises(InputError, match=r"c\.json: there is no such file"):
        read_json(tmp_path / "c.json")
