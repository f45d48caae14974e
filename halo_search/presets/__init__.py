"""The presets of the package by name: their folders, cards and probes. Nothing opens a model."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from halo_search.confidence import Probes
from halo_search.errors import InputError
from halo_search.files.json_files import json_kind, read_object
from halo_search.files.text_files import safe_relative

CARD_FILE, PROBES_FILE, TOWERS = "preset.json", "probes.npz", "towers"
# Of a card: how the model is shown pictures; further files of the model, and files beside it.
PICTURES, ASSETS, FILES = "pictures", "assets", "files"
_KINDS = {
    **dict.fromkeys((ASSETS, FILES), (list, "a list of names")),
    **dict.fromkeys((PICTURES, "data"), (dict, "an object")),
}


def folders() -> dict[str, Path]:
    """The folder of each preset, by name: those that come with ONNX towers, and those of `zoo`."""
    places = [Path(__file__).parent]
    spec = importlib.util.find_spec("zoo")  # which is not imported for it
    if spec is not None and spec.origin:
        places.append(Path(spec.origin).parent / "presets")
    return {
        folder.name: folder
        for place in places
        if place.is_dir()
        for folder in sorted(place.iterdir())
        if (folder / CARD_FILE).is_file()
    }


def names() -> list[str]:
    """The names of all presets, sorted."""
    return sorted(folders())


def folder_of(name: str | os.PathLike) -> Path | None:
    """The folder of a preset, or None of any other name."""
    return folders().get(str(name))


def towers_of(name: str | os.PathLike) -> Path | None:
    """The folder of a preset's ONNX towers, or None of a preset or name without any."""
    folder = folder_of(name)
    return folder / TOWERS if folder is not None and (folder / TOWERS).is_dir() else None


def card_of(name: str | os.PathLike) -> dict[str, Any] | None:
    """What a preset's `preset.json` says, or None of any other name."""
    folder = folder_of(name)
    return None if folder is None else read_card(folder)


def read_card(folder: Path) -> dict[str, Any]:
    """What the `preset.json` of a folder says; an InputError if it is damaged."""
    path = folder / CARD_FILE
    card = read_object(path)
    for key, (kind, expected) in _KINDS.items():
        if key in card and not isinstance(card[key], kind):
            raise InputError(f"{path}: {key!r} must be {expected}; found {json_kind(card[key])}")
    for name in (*card.get(ASSETS, ()), *card.get(FILES, ())):
        if not isinstance(name, str) or not safe_relative(name):
            raise InputError(f"{path}: expected names of files in its folder; found {name!r}")
    return card


def probes_of(name: str | os.PathLike) -> Probes | None:
    """The held-out pairs that come with a preset, or None; an InputError if they are damaged."""
    folder = folder_of(name)
    path = None if folder is None else folder / PROBES_FILE
    return Probes.load(path) if path is not None and path.is_file() else None


def absolute(name: str | os.PathLike) -> str:
    """A model's name; its path from the root where it is a path, which holds in every folder."""
    path = Path(str(name)).expanduser()
    is_path = str(name) not in folders() and path.exists()
    return str(path.resolve()) if is_path else str(name)
