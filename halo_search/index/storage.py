"""An index on disk: a folder that always holds one whole index, the old or the new.

`index.json` says what the index is, and lists every file of the folder `data-<number>` with its
checksum: `index.faiss` (FAISS' own, ids included), one `.npy` a column, `moments.npz`, and
`questions.npy` by which hubs are corrected. A save writes a new data folder, listed before it is
made (`written`), replaces `index.json` in one step, and then deletes the old data: who was loading
it begins again. Writers wait for each other.
"""

from pathlib import Path

import faiss
import numpy as np

from halo_search.confidence import GalleryMoments
from halo_search.errors import InputError
from halo_search.files.array_files import refusing
from halo_search.files.atomic import flush, in_turn
from halo_search.files.written import Written, check_facts, facts_of, read_sealed
from halo_search.index import scoring

VERSION = 2
MANIFEST = "index.json"
FAISS_FILE, MOMENTS_FILE, BANK_FILE = "index.faiss", "moments.npz", "questions.npy"
_DATA = "data-"
SAVED_MEANWHILE = (
    "another process has saved this index since it was loaded: load it again, and repeat the change"
)


def write(folder, description, index, columns, moments=None, bank=None, expected=None):
    """Saves an index, with a dict of columns, in place of the folder's, and returns the name of its
    data. Raises InputError if the folder holds other things, cannot be written, or holds other data
    than `expected`, which somebody has saved meanwhile."""
    written = Written(folder, MANIFEST)
    written.check()
    try:
        with in_turn(folder):
            written.check()
            before = written.content.get("data")
            if expected is not None and before not in (expected, None):
                raise InputError(f"{folder}: {SAVED_MEANWHILE}")
            written.tidy()
            written.remove({name for name in written.names if name.startswith(_DATA)} - {before})
            number = 1 if before is None else 1 + int(before.removeprefix(_DATA))
            data = written.folder / f"{_DATA}{number}"
            written.claim(data.name)
            data.mkdir()
            try:
                _write_files(data, index, columns, moments, bank)
                files = {path.name: facts_of(path) for path in sorted(data.iterdir())}
                manifest = {"version": VERSION, **description, "data": data.name, "files": files}
                written.write(manifest)
            finally:
                ended = written.content.get("data") == data.name
                written.remove({before} if ended else {data.name})
            return data.name
    except OSError as error:
        raise InputError(f"{folder}: cannot write the index: {error.strerror or error}") from error


def read(folder, similarity=None):
    """`(description, similarity, FAISS index, columns, moments, bank)` as `write` wrote them;
    arguments and errors as of `Index.load`. No moments or bank: None."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder}: expected a folder with an {MANIFEST}, as `Index.save` makes")
    manifest = failed = None
    while manifest != (current := read_sealed(path)):  # else it was replaced while it was opened
        manifest = current
        try:
            return _read(path, manifest, similarity)
        except InputError as error:
            failed = error
    raise failed


def _read(path, manifest, similarity):
    """As `read`, of the data that one manifest names; an InputError if its files are not as
    listed."""
    if "engine" in manifest:
        raise InputError(f"{path}: an index of LanceDB; LanceIndex.load opens it")
    if manifest.get("version") != VERSION:
        raise InputError(
            f"{path}: has version {manifest.get('version')}; this zoo reads version {VERSION}: "
            "build the index again"
        )
    data = path.parent / manifest["data"]
    for name, facts in manifest["files"].items():
        check_facts(data / name, facts)
    with refusing(data):
        index = faiss.read_index(str(data / FAISS_FILE))
        names = {*manifest["files"]} - {FAISS_FILE}
        columns = {Path(name).stem: np.load(data / name, allow_pickle=False) for name in names}
    columns.pop("uncertainty", None)  # of an index of before
    bank = columns.pop(Path(BANK_FILE).stem, None)
    if (moments := columns.pop(Path(MOMENTS_FILE).stem, None)) is not None:
        with moments:
            moments = GalleryMoments(**moments)
    return manifest, scoring.saved(path, manifest, similarity), index, columns, moments, bank


def _write_files(data, index, columns, moments, bank):
    """Writes FAISS' index, the columns, moments and bank into a new data folder, and flushes
    them."""
    try:
        faiss.write_index(index, str(data / FAISS_FILE))
    except RuntimeError as error:  # FAISS' only way to report a full disk
        raise OSError(str(error).splitlines()[-1]) from error
    for name, values in columns.items():
        np.save(data / f"{name}.npy", values)
    if moments is not None:
        np.savez(data / MOMENTS_FILE, **moments.arrays())
    if bank is not None:
        np.save(data / BANK_FILE, bank)
    for path in [*data.iterdir(), data]:
        flush(path)
