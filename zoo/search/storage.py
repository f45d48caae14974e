"""An index on disk: a folder that always holds one whole index, the old or the new.

```
index.json          version, what the index is, and the name, size and checksum of every file
data-<number>/      index.faiss (FAISS' own format, ids included), one .npy a column,
                    moments.npz where the gallery's moments are known, and the questions.npy by
                    which hubs are corrected
```

A save writes a new data folder beside the old one and then replaces `index.json` in one step, so a
crash at any moment leaves what was there. `index.json` lists each folder before it is made
(`written`), and what it does not list stays. The old data is deleted afterwards: who was loading it
begins again. Writers wait for each other.
"""

import json
import os
import re
from pathlib import Path

import faiss
import numpy as np

from zoo.confidence import GalleryMoments
from zoo.errors import InputError
from zoo.files.array_files import refusing
from zoo.files.atomic import in_turn
from zoo.files.written import KEY, Written, check_facts, facts_of, read_sealed
from zoo.search import flat, plan, scoring

VERSION = 2
MANIFEST, PARTS = "index.json", "parts.json"  # the latter of an older version
FAISS_FILE, MOMENTS_FILE, BANK_FILE = "index.faiss", "moments.npz", "questions.npy"
_DATA = re.compile(r"data-(\d+)")


def write(folder, description, index, columns, moments=None, bank=None):
    """Saves an index, with a dict of columns, in place of the folder's. Raises InputError if the
    folder holds other things, or cannot be written."""
    written = Written(folder, MANIFEST)
    _check_folder(written)
    try:
        with in_turn(folder):
            _check_folder(written)
            _write(written, description, index, columns, moments, bank)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the index: {error.strerror or error}") from error


def _check_folder(written):
    content = written.content
    if KEY not in content and _DATA.fullmatch(str(content.get("data"))):  # of an older version
        written.write(content, [content["data"]])
    written.check()


def _write(written, description, index, columns, moments, bank):
    before = written.content.get("data")
    written.tidy()
    written.remove({name for name in written.names if _DATA.fullmatch(name)} - {before})
    data = written.folder / ("data-1" if before is None else f"data-{1 + int(before[5:])}")
    written.claim(data.name)
    data.mkdir()
    try:
        _write_files(data, index, columns, moments, bank)
        files = {path.name: facts_of(path) for path in sorted(data.iterdir())}
        written.write({"version": VERSION, **description, "data": data.name, "files": files})
    finally:
        ended = written.content.get("data") == data.name
        written.remove({before} if ended else {data.name})


def read(folder, similarity=None, verify=True):
    """`(description, similarity, FAISS index, columns, moments, bank)` as `write` wrote them;
    arguments and errors as of `Index.load`. No moments or bank: None."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        if (Path(folder) / PARTS).exists():
            raise InputError(
                f"{folder}: an older version built this index in parts: build it again"
            )
        raise InputError(f"{folder}: expected a folder with an {MANIFEST}, as `Index.save` makes")
    while True:
        manifest = path.read_bytes()
        try:
            return _read(Path(folder), manifest, similarity, verify)
        except InputError:
            if path.read_bytes() == manifest:
                raise  # else the index was replaced while its files were opened


def _read(folder, manifest, similarity, verify):
    path = folder / MANIFEST
    try:
        manifest = read_sealed(path, json.loads(manifest.decode("utf-8")))
        if "version" not in manifest:
            raise InputError(f"{folder}: its save has not ended: save it again")
        version = manifest["version"]
        if "engine" in manifest:
            raise InputError(f"{path}: an index of LanceDB; use zoo.search.lance.LanceIndex.load")
        if version != VERSION:
            raise InputError(
                f"{path}: has version {version}; this zoo reads version {VERSION}: build the index "
                "again"
            )
        if (kind := manifest.pop("kind", "flat")) != "flat":
            raise InputError(
                f"{path}: an older version built this index as {kind!r}: build it again"
            )
        manifest.pop(KEY, None)
        plan.check_saved(manifest)
        files = {str(name): facts for name, facts in manifest["files"].items()}
        data = folder / manifest["data"]
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: not the description of an index ({error})") from error
    if FAISS_FILE not in files:
        raise InputError(f"{path}: lists no {FAISS_FILE} among its files")
    for name, facts in files.items():
        check_facts(data / name, facts, verify=verify)
    with refusing(data):
        index = faiss.read_index(str(data / FAISS_FILE))
        read = {name: np.load(data / name, allow_pickle=False) for name in {*files} - {FAISS_FILE}}
        moments, bank = read.pop(MOMENTS_FILE, None), read.pop(BANK_FILE, None)
        columns = {Path(name).stem: values for name, values in read.items()}
        if moments is not None:
            with moments as of:
                moments = GalleryMoments(int(of["count"]), of["mean"], of["scatter"])
    similarity = scoring.saved(path, manifest, similarity)
    _check_columns(folder, plan.columns(manifest, similarity), columns, index)
    _check_bank(data / BANK_FILE, manifest, bank, index)
    return manifest, similarity, index, columns, moments, bank


def _check_columns(folder, names, columns, index):
    """Raises InputError unless there is every column, with one row an item."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise InputError(f"{Path(folder) / MANIFEST}: lists no {missing[0]}.npy among its files")
    row_ids = flat.row_ids(index)
    items = len(row_ids)
    if "ids" in names:
        items = len(columns["ids"])
        unknown = np.setdiff1d(row_ids, columns["ids"])
        if len(unknown):
            raise InputError(f"{folder}: ids.npy lacks {len(unknown):,} of the ids in {FAISS_FILE}")
    for name, values in columns.items():
        if values.ndim == 0 or len(values) != items:
            found = values.shape[0] if values.ndim else "none"
            raise InputError(f"{folder}: {name}.npy: expected {items:,} rows, found {found}")


def _check_bank(path, manifest, bank, index):
    """Raises InputError unless there are as many questions as the description says, or none."""
    told = (manifest.get("hubs") or {}).get("questions")
    found = None if bank is None else bank.shape
    expected = None if told is None else (told, index.d - 1)
    if found != expected or (bank is not None and not np.isfinite(bank).all()):
        raise InputError(f"{path}: expected {told} questions of finite numbers, found {found}")


def check_moments(folder, moments, space, index):
    """Raises InputError unless saved moments are of as many items and dimensions as the index."""
    if moments is None:
        return
    dim = index.faiss.d + (space.name != index.description["space"])
    if (moments.count, moments.dim) != (len(index), dim):
        raise InputError(
            f"{folder}: {MOMENTS_FILE}: expected those of {len(index):,} items of dimension {dim}, "
            f"found {moments.count:,} of {moments.dim}"
        )


def _write_files(data, index, columns, moments, bank):
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
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
