"""What earlier versions had ends in one sentence that says what to use instead."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import halo_search.cli.main
import zoo
from processes import python
from zoo import errors as former

ROOT = Path(former.__file__).parent.parent
TABLE = former.table()


def of(beginning):
    return [name for name in TABLE if name.startswith(beginning)]


def test_every_name_is_of_a_kind_that_is_tried_below():
    tried = [*of("zoo."), *of("halo "), *of("make "), *of("python -m zoo.")]
    assert sorted(tried) == sorted(TABLE)
    assert all(said.endswith(".") for said in TABLE.values())
    lines = former.TABLE.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(lines)


@pytest.mark.parametrize("name", of("zoo."))
def test_a_python_name(name):
    room, _, last = name.rpartition(".")
    with pytest.raises(AttributeError) as error:
        getattr(importlib.import_module(room), last)
    assert str(error.value) == f"module {room!r} has no attribute {last!r}: {TABLE[name]}"


def test_a_name_that_never_was():
    for room in (zoo, zoo.training):
        with pytest.raises(AttributeError, match=f"{room.__name__}' has no attribute 'nothing'$"):
            _ = room.nothing
    done = python("-m", "halo_search.cli.main", "reprot", code=2)
    assert done.stderr.startswith("error: unknown command 'reprot'; the nearest")


@pytest.mark.parametrize("name", of("halo "))
def test_a_command_or_flag(name, error_of, monkeypatch):
    """Before anything else is looked at; with `=` too."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["halo"])
    words = name.split()[1:]
    spellings = [words]
    if len(words) > 1 and words[-2].startswith("--"):
        spellings.append([*words[:-2], "=".join(words[-2:])])
    for spelling in spellings:
        assert error_of(halo_search.cli.main.main, spelling).endswith(f": {TABLE[name]}\n")


@pytest.mark.parametrize("name", of("make "))
def test_a_target_of_make(name):
    done = subprocess.run(name.split(), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"error: {name}: {TABLE[name]}"


def test_a_target_that_never_was():
    done = subprocess.run(["make", "nothing"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: no target nothing")


def test_a_module(error_of, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["-m"])
    for name in of("python -m zoo."):
        said = error_of(former.Modules().find_spec, name.removeprefix("python -m "))
        assert said == f"error: {name}: {TABLE[name]}\n"
    done = python("-m", "halo_search.index", code=2, HALO_LAZY="1")  # Keras is not asked
    assert done.stderr == "error: python -m halo_search.index: Use `halo search`.\n"
    monkeypatch.undo()
    with pytest.raises(ModuleNotFoundError, match=re.escape(TABLE["zoo.report"])):
        importlib.import_module("zoo.report")
