"""The folder of a searchable gallery: one manifest, `search.json`, that names all that is in it.

| file | holds |
|---|---|
| `search.json` | the names of the others, the model, and how it was built; replaced in one step |
| `index/` | the index, its items' `names.json`, its calibration and probes |
| `embeddings/` | what `build` encoded, in parts |
| `towers-…/` | the question's tower as ONNX |
| `skipped.jsonl`, `model.keras` | items that could not be read; a model without a name |

The manifest lists every name before it is made (`written`). What it lists and no longer names is of
a build that was stopped or replaced, and is removed; what it does not list stops the writer.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import Timeout

from zoo.errors import InputError
from zoo.files.atomic import in_turn, write_text
from zoo.files.folders import printable
from zoo.files.json_files import read_object
from zoo.files.written import KEY, Written, check_facts, facts_of, read_sealed
from zoo.search import scoring, storage
from zoo.search.index import Index

SETUP, NAMES, MODEL, SKIPPED = "search.json", "names.json", "model.keras", "skipped.jsonl"
INDEX, PARTS = "index", "embeddings"
CALIBRATION, PROBES, NEAR = "calibration.json", "probes.npz", "near.npz"
_BESIDE = (NAMES, CALIBRATION, PROBES, NEAR)  # an index, whose own manifest has its other files


@contextlib.contextmanager
def locked(out: Path, wait: float = 0) -> Iterator[Written]:
    """Holds a folder, made when missing, while it is built or saved: yields its `Written`.

    An InputError, before anything is written, if it holds what this program did not write; if
    another process holds it after `wait` seconds, or it cannot be written.
    """
    written = Written(out, SETUP)
    _check(written)
    try:
        with in_turn(out, wait):
            _check(written)
            written.tidy()
            written.remove(written.names - _named(written.content) - _encoded(written))
            yield written
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
    setup = read_sealed(path)
    if KEY not in setup:
        raise InputError(_older(out))
    if not isinstance(setup.get("index"), str) or Path(setup["index"]).name != setup["index"]:
        raise InputError(f"{out}: its build has not ended; run it again to resume")
    parts = setup.get("parts", {"folder": "", "files": []})
    is_sound = isinstance(parts, dict) and isinstance(parts.get("folder"), str)
    if not is_sound or not isinstance(parts.get("files"), list):
        raise InputError(f"{path}: expected a folder and files as 'parts', found {parts!r}")
    return setup


def load(
    out: Path,
    beside: Callable[[Path], Any] = lambda folder: None,
    towers: Callable[[dict[str, Any]], Any] = lambda setup: None,
) -> tuple:
    """`(setup, names, index, beside(its folder), towers(setup))` of one build, also while another
    takes its place; with towers the index needs no Keras. An InputError if one cannot be read."""
    while True:
        setup = read_setup(out)
        folder = out / setup["index"]
        try:
            for name, facts in dict(setup.get("files") or {}).items():
                check_facts(folder / Path(name).name, facts)
            stored = towers(setup)
            index = load_index(folder, None if stored is None else scoring.Portable)
            found = setup, names_in(folder), index, beside(folder), stored
        except (InputError, OSError):
            if read_setup(out) == setup:
                raise
        else:
            # A file that is not there may have been deleted with its build a moment ago.
            if read_setup(out) == setup:
                return found


def load_index(folder: Path, similarity: Any = None) -> Any:
    """An `Index`, or a `LanceIndex`, for which LanceDB is loaded; arguments as of `Index.load`."""
    path = folder / storage.MANIFEST
    if path.is_file() and "engine" in read_sealed(path):
        from zoo.search.lance import LanceIndex

        return LanceIndex.load(folder, similarity)
    return Index.load(folder, similarity)


def model_of(out: Path, setup: dict[str, Any]) -> str:
    """What names the model of a folder: a name, a path, or a file in it; else an InputError."""
    named = setup.get("model")
    if not isinstance(named, str):
        raise InputError(f"{out}: its {SETUP} names no model; build it again")
    return str(out / MODEL) if named == MODEL else named


def fresh(written: Written, stem: str) -> Path:
    """A new folder that the manifest lists: `stem`, `stem-2` and so on. It does not exist yet."""
    number = 1
    while _numbered(stem, number) in written.names:
        number += 1
    written.claim(_numbered(stem, number))
    return written.folder / _numbered(stem, number)


def parts_for(written: Written, fits: Callable[[Path], bool]) -> Path:
    """The folder of parts that fits, of this build or of one that was stopped, else a new one."""
    folders = [written.folder / name for name in sorted(_encoded(written))]
    return next(filter(fits, reversed(folders)), None) or fresh(written, PARTS)


def claim_beside(folder: Path, *names: str) -> None:
    """Lists files that are about to be written beside an index."""
    Written(folder, storage.MANIFEST).claim(*names)


def write_names(folder: Path, names: dict[int, str]) -> None:
    """Writes what the items of an index are called."""
    write_text(folder / NAMES, json.dumps({str(one): name for one, name in names.items()}) + "\n")


def commit(written: Written, setup: dict[str, Any]) -> None:
    """Makes what `setup` names the searchable gallery, and removes what was listed before it."""
    folder = written.folder / setup["index"]
    files = (path for path in sorted(folder.iterdir()) if path.name in _BESIDE)
    written.write({**setup, "files": {path.name: facts_of(path) for path in files}})
    written.remove(written.names - _named(setup))


def check(out: Path) -> None:
    """Raises an InputError if a folder holds what this program did not write."""
    _check(Written(out, SETUP))


def _check(written):
    content = written.content
    if content and KEY not in content and ("index" in content or "model" in content):
        raise InputError(_older(written.folder))
    written.check()


def _older(out):
    return f"{out}: an older version built this index; build it again into a new folder"


def _named(setup):
    """The names in the folder that a setup still needs."""
    parts = setup.get("parts")
    folder = parts.get("folder") if isinstance(parts, dict) else None
    named = [setup.get("index"), setup.get("towers"), folder, SKIPPED]
    named += [MODEL] if setup.get("model") == MODEL else []
    return {name for name in named if isinstance(name, str)}


def _encoded(written):
    """Folders of parts that are listed: a build that was stopped resumes in one."""
    return {n for n in written.names if n == PARTS or n.startswith(f"{PARTS}-")}


def _numbered(stem, number):
    return stem if number == 1 else f"{stem}-{number}"


def names_in(folder: Path) -> dict[int, str] | None:
    """What the items of an index in a folder are called, by id."""
    if not (folder / NAMES).is_file():
        return None
    try:
        names = read_object(folder / NAMES)
        return {int(number): printable(str(name)) for number, name in names.items()}
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{folder / NAMES}: expected names by whole numbers: {error}") from error
