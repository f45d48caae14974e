"""Indexes under attack, minutes each: writers beside each other, a full disk, a long life."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

pytestmark = pytest.mark.very_slow
LITTLE, MUCH = 60, 400  # MB of a disk; a run of own pairs keeps its own features
HELPERS = Path(__file__).parent / "helpers"


def run(script, *arguments, under=()):
    """What a script of this folder prints, in a process of its own, started by what it is under."""
    command = [*under, sys.executable, str(HELPERS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("engine", ["memory", "lance"])
def test_two_writers_and_a_reader_lose_nothing(engine, tmp_path):
    if engine == "lance":
        pytest.importorskip("lancedb")
    found = run("writers_and_reader.py", tmp_path, engine, 60)
    assert min(found["saved"]) > 0
    assert found["reads"] > 10


@contextlib.contextmanager
def small_disk(path, size):
    """A file system of so many MB, for who may mount one."""
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(path)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("only an administrator of Linux may mount a small file system")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", LITTLE) as path:
        yield path


@pytest.mark.parametrize("kind", ["index", "lance", "retriever", "parts"])
def test_a_full_disk_is_a_sentence_and_leaves_what_was_there(kind, disk):
    if kind == "lance":
        pytest.importorskip("lancedb")
    found = run("full_disk.py", disk, kind)
    assert found["failed"] >= 3
    assert found["through"] >= 1


WRITERS = (
    "build",
    "lance",
    "save",
    "encode",
    "preset",
    "probes",
    "train",
    "export",
    "own_pairs",
)
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("how", ["killed", "readonly", "full"])
def test_a_writer_that_is_hindered_leaves_what_was_there(how, name, tmp_path):
    if name == "lance":
        pytest.importorskip("lancedb")
    under = UNPRIVILEGED if how == "readonly" and not os.getuid() else ()
    if under and shutil.which(under[0]) is None:
        pytest.skip("an administrator may write into every folder")
    room = MUCH if name == "own_pairs" else LITTLE
    whole = small_disk(tmp_path / "disk", room) if how == "full" else nullcontext(tmp_path)
    with whole as root:
        found = run("hindered.py", root, how, name, under=under)[name]
    assert found["hindered"] >= 1


def test_a_long_life_takes_no_memory_and_no_descriptors(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("only Linux tells how many descriptors are open")
    for name, (early, late) in run("long_life.py", tmp_path).items():
        assert late[0] - early[0] < 30, (name, early, late)
        assert late[1] - early[1] <= 2, (name, early, late)
