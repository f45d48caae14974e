"""What a preset's folder holds, and how it is written."""

import json
import os
import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import Any, Literal

import keras

from zoo.encoders import resizing_of_tower
from zoo.errors import InputError
from zoo.files.atomic import atomic_folder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.small_weights import shrink

CARD_FILE = "preset.json"
PICTURES = "pictures"  # of a card: how the model is shown pictures, where it says it itself
CONFIG_FILE, METADATA_FILE, WEIGHTS_FILE = "config.json", "metadata.json", "model.weights.h5"
MODEL_FILES = (CONFIG_FILE, METADATA_FILE, WEIGHTS_FILE)  # Keras' own, as KerasHub names them


def save_preset(
    model: DualEncoder,
    path: str | os.PathLike,
    card: dict[str, Any] | None = None,
    half_precision: bool | Literal["int8"] = False,
    files: Sequence[str | os.PathLike] = (),
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
            large ones in a quarter, see `zoo.models.small_weights`. Vectors stay as they are, since
            they hold scales and variances. The loaded model is float32 again.
        files: further files to copy beside the model, such as a run's calibrations.

    Raises:
        InputError: if the folder exists, a weight is too large for float16, or a file is missing.
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

    write_preset(path, write, card, files)


def write_preset(
    path: str | os.PathLike,
    write: Callable,
    card: dict[str, Any] | None = None,
    files: Sequence[str | os.PathLike] = (),
) -> None:
    """Makes a preset's folder whole or not at all: what `write(folder)` puts there, card and files.

    Raises:
        InputError: if the folder exists, or a file is missing.
    """
    path = pathlib.Path(path)
    if path.exists():
        raise InputError(f"{path}: exists already, and presets are not overwritten")
    card = {"name": path.name, **(card or {})}
    with atomic_folder(path) as unfinished:
        write(unfinished)
        text = json.dumps(card, indent=2, sort_keys=True)
        (unfinished / CARD_FILE).write_text(text + "\n", encoding="utf-8")
        (unfinished / "README.md").write_text(model_card(card), encoding="utf-8")
        for file in files:
            if not pathlib.Path(file).is_file():
                raise InputError(f"{file}: not a file")
            shutil.copy(file, unfinished)


def model_card(card: dict[str, Any]) -> str:
    """A card as Markdown, with the header that model hubs read.

    Args:
        card: as `save_preset` takes it.
    """
    lines = ["---", "library_name: keras", "tags: [halo-zoo, image-text-retrieval]"]
    if "license" in card:
        lines.append(f"license: {str(card['license']).lower()}")
    lines += ["---", f"# {card['name']}", ""]
    lines += ["```python", "import zoo", "", f'model = zoo.from_preset("{card["name"]}")', "```"]
    for key, value in sorted(card.items()):
        if key == "name":
            continue
        lines += ["", f"## {key.replace('_', ' ').capitalize()}", ""]
        if isinstance(value, dict):
            lines += [f"- {name}: {_in_words(entry)}" for name, entry in value.items()]
        else:
            lines.append(str(value))
    return "\n".join(lines) + "\n"


def _in_words(entry):
    if not isinstance(entry, dict):
        return entry
    return ", ".join(f"{name} {value}" for name, value in entry.items())
