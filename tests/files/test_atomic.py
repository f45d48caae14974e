import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
from filelock import Timeout

import forked
from halo_search.errors import InputError
from halo_search.files import cache_folder, locked
from halo_search.files.atomic import atomic, atomic_folder, in_turn, remove_leftovers
from halo_search.files.written import Written
from zoo.models.run_folder import RunFolder
from zoo.training.resume import Resume

WRITER = """
import os, sys
os.getpid = lambda: 1  # as in a container of its own
from halo_search.files.atomic import atomic, remove_leftovers
folder, letter, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    with atomic(folder + "/shared.txt") as temporary, open(temporary, "w") as file:
        for _ in range(20):
            file.write(letter * 1000)
            file.flush()
        remove_leftovers(folder)
        os.stat(temporary)  # nobody cleaned it away
"""


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_containers_write_one_file(tmp_path):
    writers = [start(WRITER, tmp_path, letter, 60) for letter in "ab"]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    while any(writer.poll() is None for writer in writers):
        if (tmp_path / "shared.txt").exists():
            found = (tmp_path / "shared.txt").read_text()
            assert found in ("a" * 20_000, "b" * 20_000)
        remove_leftovers(tmp_path)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["shared.txt"]


def test_a_name_may_be_as_long_as_the_disk_takes(tmp_path):
    path = tmp_path / ("n" * 251 + ".npy")
    with atomic(path) as temporary:
        temporary.write_bytes(b"whole")
    assert path.read_bytes() == b"whole"


def test_what_nobody_has_written_to_for_an_hour_goes(tmp_path):
    (tmp_path / "below").mkdir()
    old, young = tmp_path / "below" / f".tmp-{'0' * 16}-a", tmp_path / f".tmp-{'1' * 16}-a"
    for path in (old, young, tmp_path / ".tmp-mine"):
        path.write_text("half")
    for path in (old, tmp_path / ".tmp-mine"):
        os.utime(path, (0, 0))
    remove_leftovers(tmp_path, deep=False)
    assert old.exists()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"below", young.name, ".tmp-mine"}
    assert not old.exists()
    remove_leftovers(tmp_path / "missing")


KILLED = """
import os, signal, sys
from pathlib import Path
from halo_search.files.atomic import atomic, atomic_folder

path, kind = Path(sys.argv[1]), sys.argv[2]
if kind == "file":
    with atomic(path) as temporary:
        temporary.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
else:
    with atomic_folder(path, replace=True) as unfinished:
        (unfinished / "half").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows locks no folder")
def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path):
    """At once, and what a living writer holds stays."""
    file, folder = tmp_path / "a [1].txt", tmp_path / "set"
    file.write_text("old")
    with atomic_folder(folder) as unfinished:
        (unfinished / "old").touch()
    for path, kind in ((file, "file"), (folder, "folder")):
        done = subprocess.run([sys.executable, "-c", KILLED, path, kind], check=False)
        assert done.returncode == -9
    assert len(list(tmp_path.glob(".tmp-*"))) == 2
    assert file.read_text() == "old"
    assert os.listdir(folder) == ["old"]
    with atomic(file) as temporary:
        temporary.write_text("new")
        remove_leftovers(tmp_path)
        with atomic(file) as other:
            other.write_text("newer")
    with atomic_folder(folder, replace=True) as unfinished:
        (unfinished / "new").touch()
    assert file.read_text() == "new"
    assert os.listdir(folder) == ["new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, "set"]


FULL = "Can't decrement id ref count (file write failed: filename = 'x', errno = 28, buf = 0x5)"


@pytest.mark.parametrize("writer", [atomic, atomic_folder])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space"), RuntimeError(FULL)])
def test_a_full_disk_is_one_sentence_whatever_hdf5_raises(writer, error, tmp_path):
    with pytest.raises(InputError, match=r"cannot.*No space"), writer(tmp_path / "out"):
        raise error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", [atomic, atomic_folder])
def test_other_errors_of_a_block_stay_what_they_are(writer, tmp_path):
    error = RuntimeError("errno is not in it")
    with pytest.raises(RuntimeError) as raised, writer(tmp_path / "out"):
        raise error
    assert raised.value is error


def test_a_folder_is_replaced_where_both_cannot_change_places(tmp_path, monkeypatch):
    folder, former = tmp_path / "set", tmp_path / ".set-former"
    monkeypatch.setattr(sys.modules["halo_search.files.atomic"], "_EXCHANGE", 64)  # no such flag
    former.mkdir()
    (former / "old").touch()  # of a writer that was killed between its two steps
    with atomic_folder(folder, replace=True) as unfinished:
        assert os.listdir(folder) == ["old"]
        (unfinished / "new").touch()
    assert os.listdir(folder) == ["new"]
    assert os.listdir(tmp_path) == ["set"]


HOLDER = """
import sys, time
from halo_search.files.atomic import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    process = forked.start(HOLDER, tmp_path / "run")
    while not Path(process.out.name).read_text():
        assert process.is_alive(), process.err.read()
        time.sleep(0.01)
    yield process
    process.kill()
    process.join()


def test_a_second_process_is_told_and_killed_it_holds_nothing(holder, tmp_path):
    with (
        pytest.raises(InputError, match="another process is training in"),
        locked(tmp_path / "run"),
    ):
        pytest.fail("the lock was given twice")
    holder.kill()
    holder.join()
    with locked(tmp_path / "run"):
        pass


def test_it_is_free_after_the_block_and_after_an_error(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), locked(tmp_path / "run"):
            raise KeyError
    with locked(tmp_path / "run"), locked(tmp_path / "other"):
        pass
    with locked(tmp_path / "run"):
        run = RunFolder.open(tmp_path / "run", {"seed": 0})  # the lock is no other file
    assert run.settings == {"seed": 0}


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch):
    def none(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(UserWarning, match="without locks"), locked(tmp_path / "run"):
        pass


def test_a_turn_that_does_not_come_is_an_error(tmp_path):
    with in_turn(tmp_path):
        began = time.monotonic()
        with pytest.raises(Timeout), in_turn(tmp_path, 0.2):
            pytest.fail("the lock was given twice")
        assert 0.2 <= time.monotonic() - began < 2
    with in_turn(tmp_path, 0):
        pass


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


def test_what_cannot_be_removed_stays_listed(tmp_path, monkeypatch):
    written = Written(tmp_path)
    written.claim("held.txt", "other.txt")
    for name in written.names:
        (tmp_path / name).write_text(name)
    unlink = os.unlink

    def unlink_others(path):
        if path.name == "held.txt":
            raise PermissionError
        unlink(path)

    monkeypatch.setattr(os, "unlink", unlink_others)
    written.remove(["held.txt", "other.txt"])
    assert written.names == {"held.txt"}
    assert written.foreign() == []


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


def test_a_variable_moves_it(monkeypatch, tmp_path):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "here"))
    assert cache_folder("toy_birds") == tmp_path / "here" / "toy_birds"
    assert not (tmp_path / "here").exists()


def test_without_it_the_user_has_one(monkeypatch, tmp_path):
    monkeypatch.delenv("HALO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "halo-zoo"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("a", "b") == Path("~/.cache/halo-zoo/a/b").expanduser()
