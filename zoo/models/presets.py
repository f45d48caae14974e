"""Trained models by name or by folder."""

import json
import os
import pathlib
import shutil
import tempfile
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


def from_preset(name_or_path: str | os.PathLike) -> DualEncoder:
    """Loads a trained `DualEncoder`.

    Args:
        name_or_path: a name out of `list_presets()`, or a folder that holds a `model.keras`: what
            `save_preset` wrote, or the run folder of a recipe.

    Raises:
        InputError: if there is neither such a name nor such a folder, or the file in it is not a
            model of the zoo.
        MissingPackageError: if the model needs a package of an extra that is not installed.
    """
    folder = PACKAGED / str(name_or_path)
    if str(name_or_path) not in list_presets():
        folder = pathlib.Path(name_or_path)
    path = folder / MODEL_FILE
    if not path.is_file():
        raise InputError(
            f"`name_or_path` must be one of {sorted(list_presets())} or a folder with a "
            f"{MODEL_FILE}; received {str(name_or_path)!r}"
        )
    try:
        model = keras.saving.load_model(path)
    except (ValueError, OSError, KeyError, TypeError) as error:
        _raise_missing_package(error)
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{path}: not a model that this version can read: {reason}") from error
    if not isinstance(model, DualEncoder):
        raise InputError(f"{path}: expected a DualEncoder, received {type(model).__name__}")
    return model


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
    try:
        return json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"name": folder.name}
    except ValueError as error:
        raise InputError(f"{folder / CARD_FILE}: not JSON: {error}") from error
