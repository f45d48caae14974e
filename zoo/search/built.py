"""The folder of a searchable collection: which shards, which index, all replaced in one step.

`search.json` names both, so it is the moment at which a new build takes the place of an old one.
What it does not name is of a build that was stopped, or that has been replaced.
"""

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import Timeout

from zoo.collection.shards import Collection
from zoo.errors import InputError
from zoo.files.atomic import in_turn, remove_leftovers, write_text
from zoo.files.folders import TOWERS
from zoo.files.json_files import read_json, read_object
from zoo.search import scoring
from zoo.search.index import Index

SETUP, INDEX, NAMES, MODEL = "search.json", "index", "names.json", "model.keras"
_INDEX = re.compile(rf"{INDEX}(?:-(\d+))?")


@contextlib.contextmanager
def locked(out: Path, wait: float = 0) -> Iterator[None]:
    """Holds a folder, made when missing, while it is built or saved.

    An InputError if another holds it after `wait` seconds, or it cannot be written.
    """
    try:
        with in_turn(out, wait):
            yield
    except Timeout:
        waited = f", also after {wait:g} s" if wait else ""
        raise InputError(f"{out}: another process is building there{waited}") from None
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error


def read_setup(out: Path) -> dict[str, Any]:
    """What `search.json` says; an InputError if there is none, or it is of an older version."""
    path = out / SETUP
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected what `build` wrote")
    setup = read_json(path)
    if not isinstance(setup, dict) or "shards" not in setup:
        raise InputError(f"{out}: an older version built this index; build it again")
    return setup


def load(
    out: Path,
    beside: Callable[[Path], Any] = lambda folder: None,
    towers: Callable[[dict[str, Any]], Any] = lambda setup: None,
) -> tuple:
    """`(setup, names, index, what is beside, towers)` of one build, also while another takes its
    place. The names are a `Collection`, a dict from ids, or None.

    Args:
        out: the folder.
        beside: reads what else lies in the folder of the index.
        towers: reads the towers that a setup names; where it returns some, the index needs no Keras
            either.

    Raises:
        InputError: if one cannot be read.
    """
    while True:
        setup = read_setup(out)
        folder = out / setup.get("index", INDEX)
        try:
            stored = towers(setup)
            index = Index.load(folder, None if stored is None else scoring.Portable)
            found = setup, _names(out, setup), index, beside(folder), stored
        except (InputError, OSError):
            if read_setup(out) == setup:
                raise
        else:
            # A file that is not there may have been deleted with its build a moment ago.
            if read_setup(out) == setup:
                return found


def model_of(out: Path, setup: dict[str, Any]) -> str:
    """What names the model of a folder: a name, a path, or a file in it; else an InputError."""
    named = setup.get("model")
    if not isinstance(named, str):
        raise InputError(f"{out}: its {SETUP} names no model; build it again")
    return str(out / MODEL) if named == MODEL else named


def _names(out, setup):
    if setup["shards"] is not None:
        return Collection(out / setup["shards"])
    kept = out / setup.get("index", INDEX) / NAMES
    if not kept.is_file():
        return None
    return {int(number): name for number, name in read_object(kept).items()}


def new_index(out: Path) -> Path:
    """A folder for the next index. Unfinished indexes of earlier builds are deleted."""
    named = _named(out)[0]
    for path in _indexes(out):
        if path.name != named:
            shutil.rmtree(path, ignore_errors=True)
    there = [int(_INDEX.fullmatch(path.name)[1] or 1) for path in _indexes(out)]
    number = max(there, default=0) + 1
    return out / (INDEX if number == 1 else f"{INDEX}-{number}")


def commit(out: Path, setup: dict[str, Any]) -> None:
    """Makes shards and index that `setup` names the searchable ones, and deletes the others'."""
    write_text(out / SETUP, json.dumps(setup, indent=2) + "\n")
    from zoo.collection.growth import shard_folders  # which needs Keras

    index, shards = _named(out)
    for path in _indexes(out):
        if path.name != index:
            shutil.rmtree(path, ignore_errors=True)
    for path in out.glob(f"{TOWERS}*"):
        if path.is_dir() and path.name != setup.get("towers"):
            shutil.rmtree(path, ignore_errors=True)
    folders = shard_folders(out)
    for path in folders if shards in {path.name for path in folders} else ():
        if path.name != shards:
            shutil.rmtree(path, ignore_errors=True)
    remove_leftovers(out)


def _named(out):
    try:
        setup = read_object(out / SETUP)
    except InputError:
        return None, None
    return setup.get("index", INDEX), setup.get("shards")


def _indexes(out):
    return [path for path in out.iterdir() if _INDEX.fullmatch(path.name) and path.is_dir()]
