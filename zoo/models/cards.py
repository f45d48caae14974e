"""What a preset or a run says of itself beside its weights."""

import os
from typing import Any

from zoo.encoders import resizing_of_tower
from zoo.files.run_folder import RunFolder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.preset_folder import CARD_FILE, PICTURES
from zoo.models.presets import list_presets
from zoo.reading.resizing import resizing


def card_of(name: str | os.PathLike) -> dict[str, Any] | None:
    """The card of a preset, by its name or its folder; None of a run, or of a model alone."""
    presets = list_presets()
    if str(name) in presets:
        return presets[str(name)]
    folder = RunFolder(name)
    has_card = (folder.path / CARD_FILE).is_file() and not folder.is_run
    return folder.read_object(CARD_FILE) if has_card else None


def shown_pictures(model: DualEncoder, name: str | os.PathLike | None) -> dict[str, Any]:
    """How a model is shown pictures: as its image encoder says, else as `resizing_of` its name."""
    return resizing_of_tower(model.image_encoder) or ({} if name is None else resizing_of(name))


def resizing_of(name: str | os.PathLike) -> dict[str, Any]:
    """How the model of a run or preset is shown pictures, for `zoo.data.images.prepare`.

    Args:
        name: a run folder, a name out of `zoo.list_presets()`, or a file or folder that holds a
            model alone, whose pictures are then those of the defaults.

    Returns:
        `{"mode", "crop_fraction"}`.
    """
    described, folder = card_of(name), RunFolder(name)
    if described is None:
        described = folder.config if folder.is_run else {}
    if PICTURES in described:
        return dict(described[PICTURES])
    return resizing(described.get("data") or {})
