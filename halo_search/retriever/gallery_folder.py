"""The folder of a gallery: its index, names, calibration and model, read and written together.

`halo_search.index.built` keeps the list of what lies in the folder.
"""

import contextlib
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from halo_search import presets
from halo_search.confidence import Confidence, Probes
from halo_search.confidence.bank import Near
from halo_search.errors import InputError
from halo_search.files.atomic import atomic
from halo_search.files.written import Written
from halo_search.index import built
from halo_search.index.storage import MANIFEST, SAVED_MEANWHILE
from halo_search.retriever.calibration import Calibration
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.names import ItemNames
from halo_search.towers import OnnxModel, packaged

# What a gallery that is saved where it was loaded from says again: how it was built, by which
# model.
_OF_BUILD = ("model", "model_sha256", "towers", "parts", "build")
_WAIT = 60  # seconds that a save waits for others of its folder


class Stored(NamedTuple):
    """What a folder holds."""

    setup: dict[str, Any]  # the contents of its `search.json`
    names: dict[int, str] | None
    index: Any
    model: GalleryModel
    probes: Probes | None
    confidence: Confidence | None
    near: Near | None


def read(folder: Path, model: Any = None, lean: bool = False) -> Stored:
    """Reads a gallery, and warns where other weights than the model's embedded it; arguments and
    errors as of `Retriever.load`."""

    def towers(setup):
        if model is None and isinstance(setup.get("towers"), str):
            return OnnxModel(folder / setup["towers"], built.model_of(folder, setup))
        return packaged(setup["model"] if model is None else model, lean)

    setup, names, index, judging, onnx = built.load(folder, _read_judging, towers)
    probes, confidence, near = judging

    def check(opened):
        _check_weights(folder, opened, setup.get("model_sha256"), index.description)

    source = built.model_of(folder, setup) if model is None else model
    gallery_model = GalleryModel(source, onnx, check=check)
    has_towers_beside = onnx is not None and isinstance(setup.get("towers"), str)
    if not has_towers_beside:
        check(gallery_model.light)
    if probes is None:
        probes = gallery_model.probes()
    return Stored(setup, names, index, gallery_model, probes, confidence, near)


def _read_judging(folder, files):
    """The probes, the calibration and `Near` in the folder of an index, each None where its files
    have none."""
    kinds = {built.PROBES: Probes, built.CALIBRATION: Confidence, built.NEAR: Near}
    return [kind.load(folder / name) if name in files else None for name, kind in kinds.items()]


def _check_weights(folder, opened, sha256, description):
    """Warns where other weights embedded the gallery; refuses those of another width."""
    if sha256 is None or opened.model_sha256(description["side"]) == sha256:
        return
    expected = description["dim"]
    if expected not in opened.widths:
        raise InputError(
            f"{folder}: was built with embeddings of {expected} numbers; this model's have "
            f"{max(opened.widths)}: open it with its own model, or build it again"
        )
    warnings.warn(
        f"{folder}: another model embedded this gallery: its weights differ from those of "
        f"{opened.origin or 'the model that is open'}. Scores and probabilities mean nothing. "
        "Open it with its own model, or build it again",
        stacklevel=5,
    )


class History:
    """What a retriever remembers of the folders that it was loaded from and saved in.

    Attributes:
        source, setup: the folder that it was loaded from by its own model, and what `search.json`
            said there of the build; None and nothing else.
        latest, contents: the folder of the last load or save, and what its `search.json` named.
    """

    def __init__(self):
        self.source: Path | None = None
        self.setup: dict[str, Any] = {}
        self.latest: Path | None = None
        self.contents: tuple[Any, Any] | None = None

    def was_loaded(self, folder: Path, setup: dict[str, Any], by_its_model: bool) -> None:
        """Remembers a load."""
        if by_its_model:
            self.source = folder.resolve()
            self.setup = {name: setup[name] for name in _OF_BUILD if name in setup}
        self.latest, self.contents = folder.resolve(), _contents(setup)

    def was_saved(self, folder: Path, setup: dict[str, Any]) -> None:
        """Remembers a save."""
        self.latest, self.contents = folder.resolve(), _contents(setup)

    def check(self, folder: Path, setup: dict[str, Any]) -> None:
        """Raises InputError if others have saved in a folder since the last load or save there."""
        if self.latest == folder.resolve() and self.contents != _contents(setup):
            raise InputError(f"{folder}: {SAVED_MEANWHILE}")

    def setup_in(self, folder: Path) -> dict[str, Any]:
        """How the gallery was built, where it is saved in the folder that it was loaded from."""
        return dict(self.setup) if self.source == folder.resolve() else {}

    def items_changed(self) -> None:
        """Drops the parts, which are of other items now."""
        self.setup.pop("parts", None)


def _contents(setup):
    """Values that change with the state of a folder."""
    return setup.get("index"), setup.get("files")


def save(folder: Path, history: History, calibration: Calibration, names: ItemNames) -> None:
    """Writes a gallery into a folder that this function locks; errors as of `Retriever.save`."""
    with built.locked(folder, _WAIT) as written, calibration.index.lock:
        history.check(folder, written.content)
        setup = {**_setup_of(calibration), **history.setup_in(folder)}
        origin = calibration.model.origin
        if origin is None or Path(origin) == folder / built.MODEL:
            setup["model"] = _write_model(written, calibration.model)
        write(written, setup, calibration, names)
        history.was_saved(folder, written.content)


def _setup_of(calibration):
    """What `search.json` says of the model of a gallery."""
    model = calibration.model
    return {
        "model": presets.absolute(model.origin),
        "model_sha256": model.model_sha256(calibration.side),
        "towers": built.packaged_towers(model),
    }


def _write_model(written, model):
    """Writes a model that has no name into the folder, and returns its file's name."""
    written.claim(built.MODEL)
    with atomic(written.folder / built.MODEL) as temporary:
        model.opened.save(temporary)
    return built.MODEL


def write(
    written: Written,
    setup: dict[str, Any],
    calibration: Calibration,
    names: ItemNames,
) -> None:
    """Writes a gallery into a folder that `built.locked` holds, and makes it the one that `setup`
    describes."""
    where, index = built.fresh(written, built.INDEX), calibration.index
    try:
        with index.saving(where):
            _write_beside(where, calibration, names)
            is_of_captions = calibration.side == "captions"
            of_index = {"captions": is_of_captions, "index": where.name, "engine": index.engine}
            built.commit(written, {**setup, **of_index})
    except BaseException:
        with contextlib.suppress(OSError, InputError):  # the error is what stopped it
            if written.content.get("index") != where.name:
                written.remove({where.name})
        raise


def _write_beside(where, calibration, names):
    """Writes names, calibration, probes and `Near` beside an index."""
    Written(where, MANIFEST).claim(*built.BESIDE)
    if names.by_id is not None:
        built.write_names(where, names.by_id)
    confidence = calibration.judge.confidence
    if confidence is not None:
        confidence.save(where / built.CALIBRATION)
    if calibration.probes is not None and not _are_packaged(calibration):
        calibration.probes.save(where / built.PROBES)
    near = calibration.near
    if near is not None:
        with atomic(where / built.NEAR) as temporary, temporary.open("wb") as file:
            np.savez(file, **near.arrays())


def _are_packaged(calibration):
    """Whether the probes are those of the package, which a saved gallery names."""
    model = calibration.model
    return built.packaged_towers(model) is not None and calibration.probes is model.probes()
