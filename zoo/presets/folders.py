"""Where the files of presets lie, and what their cards say."""

import os
import pathlib
from typing import Any

from halo_search import presets as packaged
from halo_search.errors import InputError
from halo_search.files.decoding import resizing
from halo_search.files.json_files import read_object
from halo_search.presets import ASSETS, CARD_FILE, PICTURES, PROBES_FILE
from halo_search.towers.weights import WEIGHTS_FILE
from zoo.encoders.point_towers import resizing_of_tower
from zoo.models.dual_encoder import DualEncoder
from zoo.models.hub_models import is_hub_config
from zoo.models.hubs import HUBS, fetch, fetch_config
from zoo.models.points import POINTS_FILE
from zoo.models.preset_folder import CONFIG_FILE, MODEL_FILES
from zoo.models.run_folder import RunFolder

MODEL_FILE = "model.keras"


def list_presets() -> dict[str, dict[str, Any]]:
    """The presets of the zoo: `{name: card}`.

    A card says what the model is, what it was trained on and how well it did there, and by
    `"installed"` whether its weights are here. An installed package has those of `photos_pfe` and
    `toy_birds_pfe`; a checkout of the repository has all.

    ```python
    zoo.list_presets()  # names for `zoo.from_preset`
    ```
    """
    return {
        name: {**_read_card(folder), "installed": model_path(folder) is not None}
        for name, folder in sorted(packaged.folders().items())
    }


def preset_folder(name_or_path: str | os.PathLike) -> pathlib.Path | None:
    """Where the files of a preset lie, fetched from a hub if need be; None where there is none of
    the zoo. Raises InputError if a hub has no such preset, or cannot be reached."""
    if str(name_or_path).startswith(HUBS):
        is_preset = is_ours(fetch_config(str(name_or_path)))
        return fetched_preset(str(name_or_path)) if is_preset else None
    path = pathlib.Path(name_or_path).expanduser()
    if str(name_or_path) in packaged.folders():
        path = packaged.folder_of(name_or_path)
    return path if path.exists() else None


def model_path(folder: pathlib.Path) -> pathlib.Path | None:
    """What Keras loads of a folder: a `.keras` file, the folder itself, or None."""
    if (folder / MODEL_FILE).is_file():
        return folder / MODEL_FILE
    if (folder / POINTS_FILE).is_file():
        return folder / POINTS_FILE
    has_model = all((folder / name).is_file() for name in (CONFIG_FILE, WEIGHTS_FILE))
    return folder if has_model else None


def whole_of(path: pathlib.Path) -> pathlib.Path:
    """The folder of the preset that a preset of points names in its file. Raises InputError if it
    names none that is there."""
    name = read_object(path).get("points_of")
    folder = packaged.folder_of(str(name)) or path.parent.parent / str(name)
    is_name = isinstance(name, str) and pathlib.PurePath(name).name == name and name != ".."
    if not is_name or not folder.is_dir() or (folder / POINTS_FILE).is_file():
        raise InputError(
            f"{path}: expected `points_of` to name a preset in {path.parent.parent}; found {name!r}"
        )
    return folder


def card_of(name: str | os.PathLike) -> dict[str, Any] | None:
    """The card of a preset, by its name or its folder; None of a run, or of a model alone."""
    presets = list_presets()
    if str(name) in presets:
        return presets[str(name)]
    folder = RunFolder(name)
    has_card = (folder.path / CARD_FILE).is_file() and not folder.is_run
    return packaged.read_card(folder.path) if has_card else None


def shown_pictures(model: DualEncoder, name: str | os.PathLike | None) -> dict[str, Any]:
    """How a model is shown pictures: as its image encoder says, else as `resizing_of` its name."""
    return resizing_of_tower(model.image_encoder) or ({} if name is None else resizing_of(name))


def resizing_of(name: str | os.PathLike) -> dict[str, Any]:
    """How the model of a run, preset or file is shown pictures, for `zoo.data.images.prepare`:
    `{"mode", "crop_fraction"}`, those of the defaults of a model alone."""
    described, folder = card_of(name), RunFolder(name)
    if described is None:
        described = folder.config if folder.is_run else {}
    if PICTURES in described:
        return dict(described[PICTURES])
    return resizing(described.get("data") or {})


def fetched_preset(handle: str) -> pathlib.Path:
    """The folder on this machine of a preset of the zoo on a hub, which it is known to be. Raises
    InputError if a file is not there, or the hub cannot be reached."""
    paths = fetch(handle, MODEL_FILES)
    fetch(handle, (CARD_FILE, PROBES_FILE), may_lack=True)
    fetch(handle, _read_card(paths[0].parent).get(ASSETS, ()))
    return paths[0].parent


def is_ours(config: dict[str, Any]) -> bool:
    """Whether a `config.json` on a hub is of a preset of the zoo."""
    return "class_name" in config and not is_hub_config(config)


def _read_card(folder):
    """The card of a preset's folder, or its name alone without one."""
    has_card = (folder / CARD_FILE).is_file()
    return packaged.read_card(folder) if has_card else {"name": folder.name}
