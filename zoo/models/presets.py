"""Trained models by name or by folder."""

import json
import os
import pathlib
import shutil
import tempfile
import zipfile
from typing import Any

import keras

from zoo.errors import InputError, MissingPackageError
from zoo.models.dual_encoder import DualEncoder

PACKAGED = pathlib.Path(__file__).parent.parent / "presets"
MODEL_FILE = "model.keras"
CARD_FILE = "preset.json"


def list_presets() -> dict[str, dict[str, Any]]:
    """The presets that come with the package: `{name: card}`, a card being a dict that says what
    the model is, what it was trained on and how well it did there."""
    folders = sorted(PACKAGED.iterdir()) if PACKAGED.is_dir() else []
    return {
        folder.name: _read_card(folder) for folder in folders if (folder / MODEL_FILE).is_file()
    }


def from_preset(name_or_path: str | os.PathLike, compile: bool = False) -> DualEncoder:
    """Loads a trained `DualEncoder`.

    Args:
        name_or_path: a name out of `list_presets()`; a folder that holds a `model.keras`: what
            `save_preset` wrote, or the run folder of a recipe; or a `.keras` file.
        compile: whether the model comes back compiled as it was saved, to train or `evaluate` it
            further. Encoding, ranking and searching need no optimizer.

    Raises:
        InputError: if there is neither such a name nor such a folder or file, or the file is
            damaged or not a model of the zoo.
        MissingPackageError: if the model needs a package of an extra that is not installed.
    """
    path = pathlib.Path(name_or_path).expanduser()
    if str(name_or_path) in list_presets():
        path = PACKAGED / str(name_or_path) / MODEL_FILE
    elif not path.is_file():
        path = path / MODEL_FILE
    if not path.is_file():
        raise InputError(
            f"`name_or_path` must be one of {sorted(list_presets())}, a .keras file or a folder "
            f"with a {MODEL_FILE}; received {str(name_or_path)!r}"
        )
    _check_whole(path)
    try:
        model = keras.saving.load_model(path, compile=compile)
    except MemoryError:
        raise
    except Exception as error:  # whatever a file says may be wrong in any way
        _raise_missing_package(error)
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"{path}: not a model that this version can read: {reason}") from error
    if not isinstance(model, DualEncoder):
        raise InputError(f"{path}: expected a DualEncoder, received {type(model).__name__}")
    return model


def _check_whole(path):
    """Compares the checksums in a `.keras` file, which Keras reads past."""
    if path.suffix != ".keras":
        raise InputError(f"{path}: not a model: expected a .keras file")
    try:
        if not zipfile.is_zipfile(path):
            raise InputError(f"{path}: not a model: cut off or not a .keras file at all")
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # zipfile and zlib raise seven kinds for a damaged header
        raise InputError(f"{path}: not a model: damaged ({error})") from error
    if damaged is not None:
        raise InputError(f"{path}: not a model: damaged in {damaged} (its checksum is another)")


def save_preset(
    model: DualEncoder, path: str | os.PathLike, card: dict[str, Any] | None = None
) -> None:
    """Writes a model as a folder that `from_preset` reads. All or nothing: the folder appears
    complete, or not at all.

    Args:
        model: a `DualEncoder`.
        path: the folder to make.
        card: a dict of what a reader should know (system, data, metrics, command), kept as JSON.

    Raises:
        InputError: if the folder exists.
        TypeError: if `model` is not a `DualEncoder`.
    """
    if not isinstance(model, DualEncoder):
        raise TypeError(f"`model` must be a DualEncoder; received {type(model).__name__}")
    path = pathlib.Path(path)
    if path.exists():
        raise InputError(f"{path}: exists already, and presets are not overwritten")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        model.save(unfinished / MODEL_FILE)
        text = json.dumps({"name": path.name, **(card or {})}, indent=2, sort_keys=True)
        (unfinished / CARD_FILE).write_text(text + "\n", encoding="utf-8")
        unfinished.chmod(0o755)  # mkdtemp's 0700 would follow the folder wherever it is copied
        os.replace(unfinished, path)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _raise_missing_package(error):
    """Raises the `MissingPackageError` behind an error, if there is one: Keras hides it."""
    while error is not None:
        if isinstance(error, MissingPackageError):
            raise error
        error = error.__cause__ or error.__context__


def _read_card(folder):
    path = folder / CARD_FILE
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"name": folder.name}
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not isinstance(card, dict):
        raise InputError(f"{path}: expected a JSON object, found {card!r:.40}")
    return card
