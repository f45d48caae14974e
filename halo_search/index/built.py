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

import numpy as np
from filelock import Timeout

from halo_search import presets
from halo_search.embeddings.arrays import joined, length, thinned
from halo_search.errors import InputError
from halo_search.files.atomic import in_turn, write_text
from halo_search.files.folders import printable
from halo_search.files.json_files import read_object
from halo_search.files.written import Written, check_facts, facts_of, read_sealed
from halo_search.index.index import Index
from halo_search.index.storage import MANIFEST

SETUP, NAMES, MODEL, SKIPPED = "search.json", "names.json", "model.keras", "skipped.jsonl"
INDEX, PARTS = "index", "embeddings"
CALIBRATION, PROBES, NEAR = "calibration.json", "probes.npz", "near.npz"
BESIDE = (NAMES, CALIBRATION, PROBES, NEAR)  # an index, whose own manifest has its other files


@contextlib.contextmanager
def locked(out: Path, wait: float = 0) -> Iterator[Written]:
    """Holds a folder, made when missing, while it is built or saved: yields its `Written`. An
    InputError, before anything is written, if it holds what this program did not write; if another
    process holds it after `wait` seconds, or it cannot be written."""
    written = Written(out, SETUP)
    written.check()
    try:
        with in_turn(out, wait):
            written.check()
            written.tidy()
            written.remove(written.names - _named(written.content) - _encoded(written))
            yield written
    except Timeout:
        waited = f", also after {wait:g} s" if wait else ""
        raise InputError(f"{out}: another process is building there{waited}") from None
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error


def read_setup(out: Path) -> dict[str, Any]:
    """What `search.json` says; an InputError if there is none, or its build has not ended."""
    path = out / SETUP
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected what `build` wrote")
    setup = read_sealed(path)
    if "index" not in setup:
        raise InputError(f"{out}: its build has not ended; run it again to resume")
    return setup


def load(
    out: Path,
    beside: Callable[[Path, Any], Any] = lambda folder, files: None,
    towers: Callable[[dict[str, Any]], Any] = lambda setup: None,
) -> tuple:
    """`(setup, names, index, beside(its folder, the files), towers(setup))` of one build, also
    while another takes its place; with towers the index needs no Keras. May raise InputError."""
    setup = failed = None
    while setup != (current := read_setup(out)):  # else its files were deleted with their build
        setup, folder, files = current, out / current["index"], current["files"]
        try:
            names = read_object(folder / NAMES) if NAMES in files else None
            for name, facts in files.items():
                check_facts(folder / name, facts)
            if names is not None:
                names = {int(number): printable(name) for number, name in names.items()}
            judging, stored, kind = beside(folder, files), towers(setup), Index
            if setup.get("engine") == "lance":
                from halo_search.index.lance import LanceIndex  # which loads LanceDB

                kind = LanceIndex
            index = kind.load(folder)
            return setup, names, index, judging, stored
        except (InputError, OSError) as error:
            failed = error
    raise failed


def model_of(out: Path, setup: dict[str, Any]) -> str:
    """What names the model of a folder: a name, a path, or a file in it."""
    return str(out / MODEL) if setup["model"] == MODEL else setup["model"]


def fresh(written: Written, stem: str) -> Path:
    """A new folder that the manifest lists: `stem`, `stem-2` and so on. It does not exist yet."""
    name, number = stem, 2
    while name in written.names:
        name, number = f"{stem}-{number}", number + 1
    written.claim(name)
    return written.folder / name


def parts_for(written: Written, fits: Callable[[Path], bool]) -> Path:
    """The folder of parts that fits, of this build or of one that was stopped, else a new one."""
    folders = [written.folder / name for name in sorted(_encoded(written))]
    return next(filter(fits, reversed(folders)), None) or fresh(written, PARTS)


def write_names(folder: Path, names: dict[int, str]) -> None:
    """Writes what the items of an index are called."""
    by_id = {str(number): name for number, name in names.items()}
    write_text(folder / NAMES, json.dumps(by_id) + "\n")


def commit(written: Written, setup: dict[str, Any]) -> None:
    """Makes what `setup` names the searchable gallery, and removes what was listed before it."""
    folder = written.folder / setup["index"]
    checked = {*BESIDE, MANIFEST}  # so that no other index can take the place of this one
    files = (path for path in sorted(folder.iterdir()) if path.name in checked)
    written.write({**setup, "files": {path.name: facts_of(path) for path in files}})
    with contextlib.suppress(OSError, InputError):  # the gallery is in place; the next build tidies
        written.remove(written.names - _named(setup))


def _named(setup):
    """The files and folders beside the setup that it names, and that are kept."""
    towers = setup.get("towers")
    towers_here = towers if isinstance(towers, str) else None  # else they are the package's
    named = {setup.get("index"), towers_here, setup.get("parts", {}).get("folder"), SKIPPED}
    return named | ({MODEL} if setup.get("model") == MODEL else set())


def _encoded(written):
    """Folders of parts that are listed: a build that was stopped resumes in one."""
    return {n for n in written.names if n == PARTS or n.startswith(f"{PARTS}-")}


def index_of(
    parts: Any,
    similarity: Any,
    side: str = "images",
    candidates: int | None = None,
    hubs: Any = None,
    folder: Any = None,
) -> tuple[Any, dict[int, str]]:
    """An index over a `Collection`, a `LanceIndex` where a folder is given, and the items' names by
    id; as `Index.build`. The first part tells hubs' ceiling."""
    names = {}

    def arrays():
        for ids, part in parts.read():
            names.update(zip(ids.tolist(), part.names, strict=True))
            yield ids, part.arrays

    if folder is not None:
        from halo_search.index.lance import LanceIndex  # which loads LanceDB

        if candidates is not None:
            raise ValueError("`candidates` must be None for LanceDB: nothing is ranked again")
        parts_of_items = (part for _, part in arrays())
        return LanceIndex.build(folder, parts_of_items, similarity, side=side, hubs=hubs), names
    parts_of_items = arrays()
    ids, first = next(parts_of_items)
    index = Index.build(first, similarity, ids, side, candidates, hubs=hubs)
    index.reserve(len(parts) - len(index))
    for ids, part in parts_of_items:
        index.add(part, ids)
    if index.has_moments:
        _ = index.moments  # so that they are saved with it
    return index, names


def sample(parts: Any, most: int) -> dict[str, np.ndarray]:
    """The embeddings of about so many items, evenly out of all parts."""
    share = min(1.0, most / len(parts))
    arrays = (part.arrays for _, part in parts.read())
    return joined([thinned(part, max(1, round(share * length(part)))) for part in arrays])


def packaged_towers(model: Any) -> dict[str, str] | None:
    """What `search.json` says of a model whose ONNX towers come with the package, else None."""
    onnx = model.onnx
    if onnx is None or onnx.origin is None or onnx.folder != presets.towers_of(onnx.origin):
        return None
    return {"preset": onnx.origin, "weights_sha256": onnx.checksum}
