"""A model as a folder that `from_preset` reads."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.presets import PICTURES
from halo_search.towers.weights import WEIGHTS_FILE
from zoo.encoders.point_towers import resizing_of_tower
from zoo.models.dual_encoder import DualEncoder
from zoo.models.preset_folder import read_folder, shrink, write_preset

_SENTENCE = "A red bird, 2 dogs"


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


def _read_back(model, folder, exact):
    """Compares what was written with the model; weights in half precision by their shapes only."""
    try:
        restored = read_folder(folder)
    except MemoryError:
        raise
    except Exception as error:  # Keras raises many kinds
        raise InputError(f"{folder}: does not read back: {error}") from error
    ours, theirs = model.get_weights(), restored.get_weights()
    same = [weight.shape for weight in ours] == [weight.shape for weight in theirs]
    if same and exact:
        same = all(np.array_equal(*pair, equal_nan=True) for pair in zip(ours, theirs, strict=True))
    if same and model.tokenizer is not None:
        same = np.array_equal(model.tokenize([_SENTENCE]), restored.tokenize([_SENTENCE]))
    if not same:
        raise InputError(f"{folder}: reads back as another model; nothing was replaced")
