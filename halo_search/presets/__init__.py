"""The presets of the package by name: their folders, cards and probes. Nothing opens a model."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from halo_search.confidence import Probes
from halo_search.files.json_files import read_object

CARD_FILE, PROBES_FILE, TOWERS = "preset.json", "probes.npz", "towers"


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
    return None if folder is None else read_object(folder / CARD_FILE)


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
