"""Towers: what embeds questions and items. Packaged presets by ONNX Runtime, others by Keras.

`keras_models` is the one door from here to `zoo`.
"""

import os
from types import ModuleType
from typing import Any

from halo_search import presets
from halo_search.towers.onnx_model import OnnxModel
from halo_search.towers.tower import SIDES, Tower

__all__ = ["SIDES", "OnnxModel", "Tower", "keras_models", "open_model", "open_tower", "packaged"]


def keras_models() -> ModuleType:
    """`zoo.answering`, which opens Keras models as `OnnxModel` opens ONNX towers. Raises
    MissingPackageError without the extra `models`."""
    import zoo.answering

    return zoo.answering


def packaged(name: str | os.PathLike, lean: bool = False) -> OnnxModel | None:
    """The ONNX towers of a packaged preset, `lean` or not, see `OnnxModel`; None where the preset
    has none."""
    folder = presets.towers_of(name) if isinstance(name, (str, os.PathLike)) else None
    return None if folder is None else OnnxModel(folder, str(name), lean)


def open_model(model: Any) -> Any:
    """A model to ask with: an `OnnxModel` of a packaged preset that has ONNX towers, else a
    `zoo.answering.KerasModel` of a `DualEncoder` or of whatever `zoo.from_preset` takes.

    Raises:
        InputError: if there is no such model, or it cannot be read.
        MissingPackageError: if it needs Keras, and the extra `models` is not installed.
    """
    return packaged(model) or keras_models().open_model(model)


def open_tower(model: Any, side: str, batch_size: int | None = None) -> Tower:
    """The `Tower` of one side of a model, `"images"` or `"captions"`.

    ```python
    halo_search.open_tower("photos_pfe", "captions").of_texts(["a dog on a beach"])
    ```

    A tower is pickled as the name of its model, so that Ray and Spark take it as it is.

    Args:
        model: as of `open_model`.
        side: `"images"` or `"captions"`.
        batch_size: pictures at once; None: as the tower prefers.

    Raises:
        ValueError: if `side` is neither.
        InputError: as `open_model`.
    """
    if side not in SIDES:
        raise ValueError(f"`side` must be one of {SIDES}; received {side!r}")
    tower = open_model(model).tower(side)
    if batch_size is not None:
        tower.batch_size = batch_size
    return tower
