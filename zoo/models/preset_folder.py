"""What a preset's folder holds, how it is written, and weights in a quarter of the room."""

import json
import os
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import h5py
import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files.array_files import check_hdf5
from halo_search.files.atomic import atomic_folder
from halo_search.files.text_files import safe_relative
from halo_search.presets import ASSETS, CARD_FILE, FILES, PROBES_FILE, TOWERS, read_card
from halo_search.towers.weights import SCALES, WEIGHTS_FILE

CONFIG_FILE, METADATA_FILE = "config.json", "metadata.json"
MODEL_FILES = (CONFIG_FILE, METADATA_FILE, WEIGHTS_FILE)  # Keras' own, as KerasHub names them
_OURS = {*MODEL_FILES, CARD_FILE, "README.md", PROBES_FILE, "points_of.json", ASSETS, TOWERS}
MOST_PACKED, MOST_RATIO = 2**28, 20  # bytes of a member that may be packed as tightly as it likes
MOST_CONFIG = 64 * 2**20  # bytes; vocabularies of 250,000 words have 5 million


def write_preset(
    path: str | os.PathLike,
    write: Callable,
    card: dict[str, Any] | None = None,
    files: Sequence[str | os.PathLike] = (),
    overwrite: bool = False,
) -> None:
    """Makes a preset's folder whole or not at all: what `write(folder)` puts there, card and files.
    Raises InputError if it exists and is not to be replaced, or its card lacks what it holds."""
    path = pathlib.Path(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; `overwrite=True` replaces a preset")
    if path.exists() and not (path / CARD_FILE).is_file():
        raise InputError(f"{path}: has no {CARD_FILE}, and only a preset is replaced")
    if path.exists():
        _refuse_foreign(path)
    card = {"name": path.name, **(card or {})}
    with atomic_folder(path, replace=overwrite) as unfinished:
        write(unfinished)
        if assets := _assets(unfinished):
            card[ASSETS] = assets
        else:
            shutil.rmtree(unfinished / ASSETS, ignore_errors=True)  # Keras' own, empty
        for file in files:
            if not pathlib.Path(file).is_file():
                raise InputError(f"{file}: not a file")
            shutil.copy(file, unfinished)
        if more := sorted(_files(unfinished) - _OURS - set(assets)):
            card[FILES] = more
        text = json.dumps(card, indent=2, sort_keys=True)
        (unfinished / CARD_FILE).write_text(text + "\n", encoding="utf-8")
        (unfinished / "README.md").write_text(model_card(card), encoding="utf-8")


def _refuse_foreign(path):
    """Raises an InputError if a preset's folder holds files that its card does not list."""
    card = read_card(path)
    listed = {name for key in (ASSETS, FILES) for name in card.get(key, [])}
    if foreign := sorted(_files(path) - _OURS - listed):
        raise InputError(
            f"{path}: holds {foreign[0]}, which this program did not write; choose another folder, "
            "or move it away"
        )


def _files(folder):
    """The files and empty folders below a folder, by their paths in it."""
    paths = (path for path in folder.rglob("*") if not path.is_dir() or not any(path.iterdir()))
    return {path.relative_to(folder).as_posix() for path in paths}


def check_whole(path: pathlib.Path) -> None:
    """Compares the checksums in a `.keras` file, which Keras reads past. Raises InputError if it is
    damaged, or no such file."""
    if path.suffix != ".keras":
        raise InputError(f"{path}: not a model: expected a .keras file")
    try:
        if not zipfile.is_zipfile(path):
            raise InputError(f"{path}: not a model: cut off or not a .keras file at all")
        with zipfile.ZipFile(path) as archive:
            _check_members(path, archive.infolist())
            damaged = archive.testzip()
            if damaged is None and WEIGHTS_FILE in archive.namelist():
                with archive.open(WEIGHTS_FILE) as weights:
                    check_hdf5(weights)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # zipfile and zlib raise seven kinds for a damaged header
        raise InputError(f"{path}: not a model: damaged ({error})") from error
    if damaged is not None:
        raise InputError(f"{path}: not a model: damaged in {damaged} (its checksum is another)")


def _check_members(path, members):
    """Raises InputError for an archive whose members lead out of it, or are much larger than the
    file: reading all of them would fill the memory or the disk."""
    for member in members:
        if not safe_relative(member.filename):
            raise InputError(f"{path}: holds {member.filename!r}, which leads out of the file")
        most = max(MOST_PACKED, MOST_RATIO * member.compress_size)
        if member.filename in (CONFIG_FILE, METADATA_FILE):
            most = MOST_CONFIG
        if member.file_size > most:
            raise InputError(
                f"{path}: expected {most:,} bytes at most of {member.filename}; it has "
                f"{member.file_size:,}"
            )


def read_folder(path: pathlib.Path, compile: bool = False) -> keras.Model:
    """The model in a preset's folder. Keras reads int8 from a copy in float32."""
    path = pathlib.Path(os.path.abspath(path))
    check_hdf5(path / WEIGHTS_FILE)
    is_small, has_assets = is_int8(path / WEIGHTS_FILE), (path / ASSETS).is_dir()
    if has_assets and not is_small:
        return keras.saving.load_model(path, compile=compile)
    with tempfile.TemporaryDirectory() as folder:
        # A fourth file beside the model, such as the card, makes Keras look for assets.
        alone = pathlib.Path(folder)
        for name in (CONFIG_FILE, METADATA_FILE, *([ASSETS] if has_assets else ())):
            (alone / name).symlink_to(path / name)
        if is_small:
            widen(path / WEIGHTS_FILE, alone / WEIGHTS_FILE)
        else:
            (alone / WEIGHTS_FILE).symlink_to(path / WEIGHTS_FILE)
        return keras.saving.load_model(alone, compile=compile)


def packages_of(path: pathlib.Path) -> set[str]:
    """The packages of the layers of a preset's folder or a `.keras` file; none of a damaged one."""
    try:
        if path.is_dir():
            text = (path / CONFIG_FILE).read_text(encoding="utf-8")
        else:
            with zipfile.ZipFile(path) as archive:
                text = archive.read(CONFIG_FILE).decode("utf-8")
        return set(_packages(json.loads(text)))
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile):
        return set()


def _packages(config):
    """Yields the names of the packages whose classes a Keras config has, at any depth."""
    if isinstance(config, dict):
        if isinstance(config.get("module"), str) and "class_name" in config:
            yield config["module"].partition(".")[0]
        config = list(config.values())
    if isinstance(config, list):
        for part in config:
            yield from _packages(part)


def _assets(folder):
    """The model's files below its folder, which a hub has to be asked for by their names."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in (folder / ASSETS).rglob("*")
        if path.is_file()
    )


def model_card(card: dict[str, Any]) -> str:
    """A card, as `save_preset` takes it, as Markdown with the header that model hubs read."""
    lines = ["---", "library_name: keras", "tags: [halo-zoo, image-text-retrieval]"]
    if "license" in card:
        spdx = str(card["license"]).lower()
        lines.append(f"license: {'other' if ' ' in spdx else spdx}")
    lines += ["---", f"# {card['name']}", ""]
    lines += ["```python", "import zoo", "", f'model = zoo.from_preset("{card["name"]}")', "```"]
    for key, value in sorted(card.items()):
        if key in ("name", FILES):
            continue
        lines += ["", f"## {key.replace('_', ' ').capitalize()}", ""]
        if isinstance(value, dict):
            lines += [f"- {name}: {_in_words(entry)}" for name, entry in value.items()]
        else:
            lines.append(str(value))
    return "\n".join(lines) + "\n"


def _in_words(entry):
    """An entry of a card as text: a dict becomes `name value, name value`."""
    if not isinstance(entry, dict):
        return entry
    return ", ".join(f"{name} {value}" for name, value in entry.items())


LEAST = 1 << 16  # elements from which a matrix is worth steps of its own
_LEVELS = 127


def shrink(path: str | os.PathLike, int8: bool = False) -> None:
    """Rewrites an HDF5 file of weights with float16 matrices, with `int8` the large ones as int8.
    Raises InputError if a weight is too large for float16."""
    path = pathlib.Path(path)

    def narrowed(name, values, scales):
        if values.ndim < 2 or values.dtype != np.float32:
            return values
        if int8 and values.size >= LEAST:
            levels, steps = to_int8(values)
            scales.create_dataset(name, data=steps)
            return levels
        if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
            raise InputError(f"{name}: a weight is too large for float16")
        return values.astype(np.float16)

    _rewritten(path, path, narrowed)


def is_int8(path: str | os.PathLike) -> bool:
    """Whether `shrink` has left int8 in a file, which Keras cannot read as it is."""
    try:
        with h5py.File(path, "r") as file:
            return SCALES in file
    except OSError:
        return False  # Keras says what is wrong with it


def widen(path: str | os.PathLike, out: str | os.PathLike) -> None:
    """Writes what `shrink` made as a file that Keras reads. Raises KeyError or OSError if it is
    damaged."""
    with h5py.File(path, "r") as file:
        steps = file[SCALES]

        def widened(name, values, _):
            if values.dtype != np.int8:
                return values
            return values.astype(np.float32) * steps[name][()].astype(np.float32)

        _rewritten(path, out, widened, small=False)


def to_int8(values):
    """`(levels, steps)`, int8 and float16, of product about `values`; a matrix has steps for all
    but its first axis, a table of vectors one per row, a convolution one per output channel."""
    by_row = values.ndim == 2 and values.shape[0] > 8 * values.shape[1]  # a table of vectors
    axes = (0, 1, 2) if values.ndim == 4 else -1 if by_row else 0
    largest = np.abs(values).max(axis=axes, keepdims=True)
    steps = np.maximum((largest / _LEVELS).astype(np.float16), np.finfo(np.float16).tiny)
    # The largest weight may lack a part of a step, by which what was int8 stays as it is.
    levels = np.rint(values / steps.astype(np.float32))
    return np.clip(levels, -_LEVELS, _LEVELS).astype(np.int8), steps


def _rewritten(path, out, change, small=True):
    """Copies a file with changed arrays; a `small` one holds the scales, and is compressed but for
    int8, which gains a seventh, and takes a question longer to inflate than to be answered."""
    unfinished = pathlib.Path(out).with_suffix(".unfinished")
    # The layout of HDF5 1.10 (2016) spends 3 kB less on each array than the oldest, which is the
    # default: 2.4 MB of `photos_pfe`.
    file = h5py.File(unfinished, "w", libver=("v110", "v110"))
    with h5py.File(path, "r") as old, file as new:
        scales = new.create_group(SCALES) if small else None

        def copy(name, item):
            if name.split("/")[0] == SCALES:
                return
            if not isinstance(item, h5py.Dataset):
                new.require_group(name).attrs.update(item.attrs)
                return
            values = change(name, item[()], scales)
            packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
            is_packed = small and values.size > 100 and values.dtype != np.int8
            options = packed | {"chunks": values.shape} if is_packed else {}
            new.create_dataset(name, data=values, **options).attrs.update(item.attrs)

        new.attrs.update(old.attrs)
        old.visititems(copy)
        if small and not len(scales):
            del new[SCALES]
    os.replace(unfinished, out)
