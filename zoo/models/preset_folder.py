"""What a preset's folder holds, and how it is written."""

import json
import os
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, Literal

import h5py
import keras
import numpy as np

from zoo.encoders.point_towers import resizing_of_tower
from zoo.errors import InputError
from zoo.files.array_files import check_hdf5, check_sizes
from zoo.files.atomic import atomic_folder
from zoo.models.dual_encoder import DualEncoder

CARD_FILE = "preset.json"
PICTURES = "pictures"  # of a card: how the model is shown pictures, where it says it itself
CONFIG_FILE, METADATA_FILE, WEIGHTS_FILE = "config.json", "metadata.json", "model.weights.h5"
MODEL_FILES = (CONFIG_FILE, METADATA_FILE, WEIGHTS_FILE)  # Keras' own, as KerasHub names them
ASSETS = "assets"  # of a card: further files of the model, such as a tokenizer's
MOST_CONFIG = 64 * 2**20  # bytes; vocabularies of 250,000 words have 5 million
_SENTENCE = "A red bird, 2 dogs"
SCALES = "halo_scales"  # the group that says what the steps of int8 are
LEAST = 1 << 16  # elements from which a matrix is worth steps of its own
_LEVELS = 127


def save_preset(
    model: DualEncoder,
    path: str | os.PathLike,
    card: dict[str, Any] | None = None,
    half_precision: bool | Literal["int8"] = False,
    files: Sequence[str | os.PathLike] = (),
    overwrite: bool = False,
) -> None:
    """Writes a model as a folder that `from_preset` reads. All or nothing: the folder appears
    complete, or not at all.

    ```python
    zoo.save_preset(model, "my_birds", {"system": "pcme"}, half_precision=True)
    keras_hub.upload_preset("hf://me/my_birds", "my_birds")
    ```

    Args:
        model: a `DualEncoder`.
        path: the folder to make.
        card: a dict of what a reader should know (system, data, metrics, command), kept as
            `preset.json` and, for people, as `README.md`.
        half_precision: whether matrices are kept as float16, in half the room; `"int8"` keeps the
            large ones in a quarter, see `zoo.models.preset_folder`. Vectors stay as they are, since
            they hold scales and variances. The loaded model is float32 again.
        files: further files to copy beside the model, such as a run's calibrations.
        overwrite: replaces a preset at `path`, once the new one has been read back with the
            weights and the token ids of `model`. A folder that is no preset is never replaced.

    Raises:
        InputError: if the folder exists, a weight is too large for float16, a file is missing, or
            what was written does not read back.
        TypeError: if `model` is not a `DualEncoder`.

    Relations: `DualEncoder.save_to_preset` is this with `overwrite`, as KerasHub names it.
    """
    if not isinstance(model, DualEncoder):
        raise TypeError(f"`model` must be a DualEncoder; received {type(model).__name__}")
    if shown := resizing_of_tower(model.image_encoder):
        card = {PICTURES: shown, **(card or {})}

    def write(folder):
        keras.saving.save_model(model, folder, zipped=False)
        if half_precision:
            shrink(folder / WEIGHTS_FILE, int8=half_precision == "int8")
        if pathlib.Path(path).exists():
            _read_back(model, folder, exact=not half_precision)

    write_preset(path, write, card, files, overwrite)


def write_preset(
    path: str | os.PathLike,
    write: Callable,
    card: dict[str, Any] | None = None,
    files: Sequence[str | os.PathLike] = (),
    overwrite: bool = False,
) -> None:
    """Makes a preset's folder whole or not at all: what `write(folder)` puts there, card and files.
    Raises InputError if the folder exists and is not to be replaced, or a file is missing."""
    path = pathlib.Path(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; `overwrite=True` replaces a preset")
    if path.exists() and not (path / CARD_FILE).is_file():
        raise InputError(f"{path}: has no {CARD_FILE}, and only a preset is replaced")
    card = {"name": path.name, **(card or {})}
    with atomic_folder(path, replace=overwrite) as unfinished:
        write(unfinished)
        if assets := _assets(unfinished):
            card[ASSETS] = assets
        text = json.dumps(card, indent=2, sort_keys=True)
        (unfinished / CARD_FILE).write_text(text + "\n", encoding="utf-8")
        (unfinished / "README.md").write_text(model_card(card), encoding="utf-8")
        for file in files:
            if not pathlib.Path(file).is_file():
                raise InputError(f"{file}: not a file")
            shutil.copy(file, unfinished)


def check_inflation(archive: zipfile.ZipFile, size: int) -> None:
    """Refuses a `.keras` file that inflates beyond what a model can be, by its headers. Raises
    ValueError if its JSON has more than `MOST_CONFIG` bytes, or the whole archive more than 16
    times its own size."""
    check_sizes(archive, 16 * size + MOST_CONFIG)
    for info in archive.infolist():
        if info.filename.endswith(".json") and info.file_size > MOST_CONFIG:
            raise ValueError(
                f"{info.filename} inflates to {info.file_size:,} bytes; expected {MOST_CONFIG:,} "
                "at most"
            )


def read_folder(path: pathlib.Path, compile: bool = False) -> keras.Model:
    """The model in a preset's folder. Keras reads int8 from a copy in float32."""
    path = pathlib.Path(os.path.abspath(path))
    check_hdf5(path / WEIGHTS_FILE, (path / WEIGHTS_FILE).stat().st_size)
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


def _read_back(model, folder, exact):
    """Compares what was written with the model; weights in half precision by their shapes only."""
    try:
        found = read_folder(folder)
    except MemoryError:
        raise
    except Exception as error:  # Keras raises many kinds
        raise InputError(f"{folder}: does not read back: {error}") from error
    ours, theirs = model.get_weights(), found.get_weights()
    same = [one.shape for one in ours] == [one.shape for one in theirs]
    if same and exact:
        same = all(np.array_equal(*pair, equal_nan=True) for pair in zip(ours, theirs, strict=True))
    if same and model.tokenizer is not None:
        same = np.array_equal(model.tokenize([_SENTENCE]), found.tokenize([_SENTENCE]))
    if not same:
        raise InputError(f"{folder}: reads back as another model; nothing was replaced")


def _assets(folder):
    """The model's files below its folder, which a hub has to be asked for by their names."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in (folder / ASSETS).rglob("*")
        if path.is_file()
    )


def model_card(card: dict[str, Any]) -> str:
    """A card as Markdown, with the header that model hubs read.

    Args:
        card: as `save_preset` takes it.
    """
    lines = ["---", "library_name: keras", "tags: [halo-zoo, image-text-retrieval]"]
    if "license" in card:
        spdx = str(card["license"]).lower()
        lines.append(f"license: {'other' if ' ' in spdx else spdx}")
    lines += ["---", f"# {card['name']}", ""]
    lines += ["```python", "import zoo", "", f'model = zoo.from_preset("{card["name"]}")', "```"]
    for key, value in sorted(card.items()):
        if key == "name":
            continue
        lines += ["", f"## {key.replace('_', ' ').capitalize()}", ""]
        if isinstance(value, dict):
            lines += [f"- {name}: {_in_words(entry)}" for name, entry in value.items()]
        else:
            lines.append(str(value))
    return "\n".join(lines) + "\n"


def shrink(path: str | os.PathLike, int8: bool = False) -> None:
    """Rewrites an HDF5 file of weights with its matrices as float16, the large ones as int8.

    Vectors stay as they are, since they hold scales and variances, and so do kernels of
    convolutions at float16: there are few, and a depthwise one has nine numbers a channel.

    Args:
        path: the file.
        int8: whether matrices of two or three axes with 65,536 numbers and more become int8: each
            column of a kernel, and each row of a table of word vectors, in 127 steps to either
            side, the steps in float16 beside it.

    Raises:
        InputError: if a weight is too large for float16.
    """
    path = pathlib.Path(path)

    def narrowed(name, values, scales):
        if values.ndim < 2 or values.dtype != np.float32:
            return values
        if int8 and values.ndim < 4 and values.size >= LEAST:
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
    """Writes what `shrink` made as a file that Keras reads.

    Raises:
        KeyError, OSError: if the file is damaged.
    """
    with h5py.File(path, "r") as file:
        steps = file[SCALES]

        def widened(name, values, _):
            if values.dtype != np.int8:
                return values
            return values.astype(np.float32) * steps[name][()].astype(np.float32)

        _rewritten(path, out, widened, keep_scales=False, compress=False)


def to_int8(values):
    """`(levels, steps)`, int8 and float16, of which the product is about `values`, float32 of two
    or three axes: a kernel has steps for all but its first axis, a table of word vectors for each
    row. What is such a product already comes back exactly."""
    by_row = values.ndim == 2 and values.shape[0] > 8 * values.shape[1]  # a table of vectors
    largest = np.abs(values).max(axis=-1 if by_row else 0, keepdims=True)
    steps = np.maximum((largest / _LEVELS).astype(np.float16), np.finfo(np.float16).tiny)
    # The largest weight may lack a part of a step, by which what was int8 stays as it is.
    levels = np.rint(values / steps.astype(np.float32))
    return np.clip(levels, -_LEVELS, _LEVELS).astype(np.int8), steps


def _in_words(entry):
    if not isinstance(entry, dict):
        return entry
    return ", ".join(f"{name} {value}" for name, value in entry.items())


def _rewritten(
    path: pathlib.Path,
    out: pathlib.Path,
    change: Callable,
    keep_scales: bool = True,
    compress: bool = True,
):
    unfinished = pathlib.Path(out).with_suffix(".unfinished")
    with h5py.File(path, "r") as old, h5py.File(unfinished, "w") as new:
        scales = new.create_group(SCALES) if keep_scales else None

        def copy(name, item):
            if name.split("/")[0] == SCALES:
                return
            if not isinstance(item, h5py.Dataset):
                new.require_group(name).attrs.update(item.attrs)
                return
            values = change(name, item[()], scales)
            packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
            options = packed if compress and values.size > 100 else {}
            new.create_dataset(name, data=values, **options).attrs.update(item.attrs)

        new.attrs.update(old.attrs)
        old.visititems(copy)
        if keep_scales and not len(scales):
            del new[SCALES]
    os.replace(unfinished, out)
