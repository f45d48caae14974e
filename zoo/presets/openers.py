"""Which opener reads what a model is named by: one function a kind of name."""

import hashlib
import importlib.util
import os
import pathlib

import keras
import numpy as np

from halo_search import presets as packaged
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.towers.weights import WEIGHTS_FILE
from zoo.checkpoints.loading import read_published
from zoo.models.dual_encoder import DualEncoder
from zoo.models.hub_models import hub_model, is_hub_config, is_hub_folder, nearest
from zoo.models.hubs import HUBS, fetch_config, fetch_weights, hub_names
from zoo.models.hugging_face import MODEL_TYPES, model_type_of
from zoo.models.points import POINTS_FILE, points_of
from zoo.models.preset_folder import CONFIG_FILE, MOST_CONFIG, check_whole, packages_of, read_folder
from zoo.presets.folders import (
    MODEL_FILE,
    fetched_preset,
    is_ours,
    list_presets,
    model_path,
    whole_of,
)

EXTRAS = {"keras_hub": "models"}  # that bring the packages of whose layers a model may be made
_HUB_NAMES = ("clip_", "siglip_", "siglip2_", "metaclip_")  # how KerasHub's names begin


def open_named(name: str | os.PathLike, compile: bool) -> DualEncoder:
    """The model of a name, a handle, a folder or a file, by the first of `OPENERS` that knows it.
    Raises InputError if none does."""
    _check_name(name)
    for opener in OPENERS:
        model = opener(name, compile)
        if model is not None:
            return marked(model, name)
    if str(name).startswith(_HUB_NAMES):  # known to be none where KerasHub is installed
        require("keras_hub", extra=EXTRAS["keras_hub"])
    raise InputError(
        f"no such model: {str(name)!r}; a model must be one of the presets "
        f"{', '.join(sorted(list_presets()))}; a KerasHub name such as "
        f"'siglip2_base_patch16_224'; a .keras file; a handle that begins with "
        f"{' or '.join(HUBS)}; or a folder with a {MODEL_FILE}, a {WEIGHTS_FILE}, CLIP or "
        "SigLIP of Hugging Face, or a published checkpoint"
        f"{nearest(str(name), list(list_presets()))}"
    )


def _check_name(name):
    """Raises InputError for what can be neither a name nor a path that may be looked at."""
    text = os.fspath(name)
    if not text.strip():
        raise InputError(f"expected a name, folder or handle of a model; received {text!r}")
    try:
        os.stat(os.path.expanduser(text))
    except (FileNotFoundError, NotADirectoryError):
        pass  # a name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"no such model: {text!r} ({reason})") from error


def open_preset(name: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """A preset of `list_presets()`. Raises InputError if its weights are not installed."""
    if str(name) not in packaged.folders():
        return None
    path = model_path(packaged.folder_of(name))
    if path is None:
        raise InputError(
            f"{name}: this preset is in the repository only, not in the installed package; run "
            f"in a checkout, or give the path of its folder zoo/presets/{name}"
        )
    return read_model(path, compile)


def open_on_a_hub(handle: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """What lies under `hf://` or `kaggle://`: a preset of the zoo, a model of KerasHub or of
    `transformers`, or a published checkpoint."""
    handle = str(handle)
    if not handle.startswith(HUBS):
        return None
    config = fetch_config(handle)
    if is_ours(config):
        path = model_path(fetched_preset(handle))
        return None if path is None else read_model(path, compile)
    kind = config.get("model_type")
    if is_hub_config(config) or kind not in (None, *MODEL_TYPES):  # KerasHub fetches it itself
        return hub_model(handle)
    folder = fetch_weights(handle)
    return read_published(folder) if kind is None else _of_other_libraries(folder)


def open_folder_of_other_libraries(path: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """A folder of KerasHub or of `transformers`."""
    path = pathlib.Path(path).expanduser()
    return _of_other_libraries(path) if path.is_dir() and is_hub_folder(path) else None


def open_folder(path: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """A folder of `save_preset`, or the run folder of a recipe."""
    path = pathlib.Path(path).expanduser()
    model = model_path(path) if path.is_dir() else None
    return None if model is None else read_model(model, compile)


def open_published(path: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """The weights that a paper's authors published, as a file or in a folder."""
    path = pathlib.Path(path).expanduser()
    return read_published(path) if path.exists() else None


def open_file(path: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """A `.keras` file."""
    path = pathlib.Path(path).expanduser()
    return read_model(path, compile) if path.is_file() else None


def open_hub_name(name: str | os.PathLike, compile: bool) -> DualEncoder | None:
    """A name of KerasHub's, whose files it fetches."""
    return hub_model(name) if str(name) in hub_names() else None


# The first that knows a name opens it: a preset before a folder of the same name, and a `.keras`
# file only once it is known to be no published checkpoint.
OPENERS = (
    open_preset,
    open_on_a_hub,
    open_folder_of_other_libraries,
    open_folder,
    open_published,
    open_file,
    open_hub_name,
)


def _of_other_libraries(folder):
    """A folder of KerasHub or `transformers`, or a published checkpoint with such a config."""
    model = None if model_type_of(folder) is None else read_published(folder)
    return hub_model(folder) if model is None else model


def read_model(path: pathlib.Path, compile: bool) -> DualEncoder:
    """Reads what `model_path` names: a `.keras` file, a folder of weights, or a preset of points.

    Raises:
        InputError: if the file is damaged, or not of a `DualEncoder`.
        MissingPackageError: if the model needs a package that is not installed.
    """
    if path.name == POINTS_FILE:
        return points_of(open_named(whole_of(path), compile=False))
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
    return model


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


def marked(model: DualEncoder, name: str | os.PathLike) -> DualEncoder:
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
