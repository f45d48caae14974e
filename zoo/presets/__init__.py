"""Trained models by name or by folder."""

import hashlib
import importlib.util
import os
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np

from halo_search import presets as packaged
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.files.decoding import resizing
from halo_search.files.json_files import read_object
from halo_search.presets import CARD_FILE, PROBES_FILE
from halo_search.towers.weights import WEIGHTS_FILE
from zoo.checkpoints.loading import read_published
from zoo.encoders.point_towers import resizing_of_tower
from zoo.models.dual_encoder import DualEncoder
from zoo.models.hub_models import (
    HUBS,
    fetch,
    fetch_config,
    fetch_weights,
    hub_model,
    hub_names,
    is_hub_config,
    is_hub_folder,
    nearest,
)
from zoo.models.hugging_face import MODEL_TYPES, model_type_of
from zoo.models.points import POINTS_FILE, points_of
from zoo.models.preset_folder import (
    ASSETS,
    CONFIG_FILE,
    MODEL_FILES,
    MOST_CONFIG,
    PICTURES,
    check_whole,
    packages_of,
    read_folder,
    shrink,
    write_preset,
)
from zoo.models.run_folder import RunFolder

MODEL_FILE = "model.keras"
EXTRAS = {"keras_hub": "models"}  # that bring the packages of whose layers a model may be made
_HUB_NAMES = ("clip_", "siglip_", "siglip2_", "metaclip_")  # how KerasHub's names begin
_SENTENCE = "A red bird, 2 dogs"


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
        name: {**_read_card(folder), "installed": _model_path(folder) is not None}
        for name, folder in sorted(packaged.folders().items())
    }


def from_preset(
    name_or_path: str | os.PathLike | keras.Model,
    compile: bool = False,
    preprocessor: keras.layers.Layer | None = None,
) -> DualEncoder:
    """Loads a trained `DualEncoder`, of the zoo or of others.

    ```python
    model = zoo.from_preset("toy_birds_pfe")
    ```

    Everything that takes a model takes what this takes: `Tower`, `Retriever.build`, and `MODEL` or
    `--model` of the commands.

    Args:
        name_or_path: a name out of `list_presets()`; a folder that `save_preset` wrote, or the run
            folder of a recipe; a `.keras` file; a KerasHub name of CLIP, SigLIP, SigLIP 2 or
            MetaCLIP 2, such as `"siglip2_base_patch16_224"`; a folder of KerasHub or of Hugging
            Face with one of these; a published checkpoint, see `zoo.from_checkpoint`; any of these
            folders on a hub, `"hf://user/model"` or `"kaggle://user/model/keras/variation"`; or a
            `CLIPBackbone`, `SigLIPBackbone` or `MetaCLIP2Backbone`, whose layers are then shared.
        compile: whether the model comes back compiled as it was saved, to train or `evaluate` it
            further. Encoding, ranking and searching need no optimizer.
        preprocessor: the KerasHub preprocessor of a backbone; None gives its family's usual pixels
            and no tokenizer.

    Returns:
        The model. Of KerasHub and Hugging Face it is of points: embeddings of length one, and a
        similarity that gives their logits.

    Raises:
        InputError: if there is neither such a name nor such a folder or file, it cannot be
            fetched, or the file is damaged or not a model of the zoo.
        MissingPackageError: if the model needs a package of an extra that is not installed.
    Released code differs: KerasHub's image converter makes squares bicubically or bilinearly
        without antialiasing; here `zoo.data.images.prepare` crops or stretches as the converter
        does, with antialiasing.
    """
    if isinstance(name_or_path, keras.Model):
        return hub_model(name_or_path, preprocessor)
    foreign = _foreign(name_or_path)
    if foreign is not None:
        return _named(foreign, name_or_path)
    path = preset_folder(name_or_path)
    if path is None or (path := path if path.is_file() else _model_path(path)) is None:
        if str(name_or_path) in list_presets():
            raise InputError(
                f"{name_or_path}: this preset is in the repository only, not in the installed "
                "package; run in a checkout, or give the path of its folder zoo/presets/"
                f"{name_or_path}"
            )
        if str(name_or_path).startswith(_HUB_NAMES):  # known to be none where KerasHub is installed
            require("keras_hub", extra=EXTRAS["keras_hub"])
        raise InputError(
            f"no such model: {str(name_or_path)!r}; a model must be one of the presets "
            f"{', '.join(sorted(list_presets()))}; a KerasHub name such as "
            f"'siglip2_base_patch16_224'; a .keras file; a handle that begins with "
            f"{' or '.join(HUBS)}; or a folder with a {MODEL_FILE}, a {WEIGHTS_FILE}, CLIP or "
            "SigLIP of Hugging Face, or a published checkpoint"
            f"{nearest(str(name_or_path), list(list_presets()))}"
        )
    if path.name == POINTS_FILE:
        return _named(points_of(from_preset(whole_of(path))), name_or_path)
    if path.is_file():
        check_whole(path)
    elif (path / CONFIG_FILE).stat().st_size > MOST_CONFIG:
        raise InputError(f"{path / CONFIG_FILE}: expected {MOST_CONFIG:,} bytes at most")
    try:
        read = keras.saving.load_model if path.is_file() else read_folder
        model = read(path, compile=compile)
    except MemoryError:
        raise
    except Exception as error:  # whatever a file says may be wrong in any way
        _raise_missing_package(error, path)
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"{path}: not a model that this version can read: {reason}") from error
    if not isinstance(model, DualEncoder):
        raise InputError(f"{path}: expected a DualEncoder, received {type(model).__name__}")
    return _named(model, name_or_path)


def _named(model, name):
    """A model that knows where it came from, and so where its probes are."""
    model.origin, model.origin_weights = str(name), weights_mark(model)
    return model


def weights_mark(model: DualEncoder) -> bytes:
    """A hash of some of each weight, which tells whether a model has changed since it was read."""
    digest = hashlib.blake2b(digest_size=8)
    for weight in model.weights:
        values = np.asarray(weight.numpy()).reshape(-1)
        digest.update(np.ascontiguousarray(values[:: max(1, values.size // 64)]).tobytes())
    return digest.digest()


def _foreign(name_or_path):
    """A model that other libraries or authors wrote, or None."""
    text = str(name_or_path)
    path = pathlib.Path(text).expanduser()
    if text in list_presets():
        return None
    if text.startswith(HUBS):
        return _on_a_hub(text)
    if path.is_dir():
        if is_hub_folder(path):
            return _in_a_model_type(path)
        if _model_path(path) is not None:
            return None
    if path.exists():
        return _published(path)
    return hub_model(text) if text in hub_names() else None


def _on_a_hub(handle):
    config = fetch_config(handle)
    if _is_ours(config):
        return None
    kind = config.get("model_type")
    if is_hub_config(config) or kind not in (None, *MODEL_TYPES):  # KerasHub fetches it itself
        return hub_model(handle)
    folder = fetch_weights(handle)
    return _published(folder) if kind is None else _in_a_model_type(folder)


def _in_a_model_type(path):
    """A folder of KerasHub or `transformers`, or a published checkpoint with such a config."""
    model = None if model_type_of(path) is None else _published(path)
    return hub_model(path) if model is None else model


def _published(path):
    return read_published(path)


def _is_ours(config):
    return "class_name" in config and not is_hub_config(config)


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


def preset_folder(name_or_path: str | os.PathLike) -> pathlib.Path | None:
    """Where the files of a preset lie, fetched from a hub if need be; None where there is none of
    the zoo. Raises InputError if a hub has no such preset, or cannot be reached."""
    if str(name_or_path).startswith(HUBS):
        return _fetched(str(name_or_path))
    path = pathlib.Path(name_or_path).expanduser()
    if str(name_or_path) in list_presets():
        path = packaged.folder_of(name_or_path)
    return path if path.exists() else None


def _model_path(folder):
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
    return read_object(folder.path / CARD_FILE) if has_card else None


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


def _fetched(uri):
    """The folder on this machine of a preset of the zoo on a hub, or None of another model."""
    if not _is_ours(fetch_config(uri)):
        return None
    paths = fetch(uri, MODEL_FILES)
    fetch(uri, (CARD_FILE, PROBES_FILE), may_lack=True)
    fetch(uri, _read_card(paths[0].parent).get(ASSETS, ()))
    return paths[0].parent


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


def _raise_missing_package(error, path):
    """Raises the `MissingPackageError` behind an error, if there is one: Keras hides it, and names
    no package where a layer's module cannot be imported."""
    while error is not None:
        if isinstance(error, MissingPackageError):
            raise error
        error = error.__cause__ or error.__context__
    for package in sorted(packages_of(path)):
        if importlib.util.find_spec(package) is not None:
            continue
        if package in EXTRAS:
            require(package, EXTRAS[package])
        raise MissingPackageError(f"{path}: the model needs the package {package}; install it")


def _read_card(folder):
    path = folder / CARD_FILE
    return read_object(path) if path.is_file() else {"name": folder.name}
