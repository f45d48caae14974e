"""What layers and pipelines refuse of a recipe's settings: one line, before anything is lost."""

import contextlib
import re
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo import similarities
from zoo.errors import InputError
from zoo.files.atomic import write_text

TRACEBACK = "traceback.txt"
_COLOURS = re.compile("\x1b\\[[0-9;]*m")


@contextlib.contextmanager
def one_line(folder: Path) -> Iterator[None]:
    """In here a `ValueError` becomes an `InputError` of one line; its traceback goes into a file.

    Which sizes go together is known to the layers, the pipelines and Keras' networks that are made
    of them: an even width for two directions, 32 pixels for a ResNet. They raise `ValueError`, and
    so does a defect of ours, so that nothing of it may be lost.

    Args:
        folder: of the run; `traceback.txt` is written there.

    Raises:
        InputError: the same sentence without Keras' frame and colours, and where the rest is.
    """
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        path = Path(folder) / TRACEBACK
        write_text(path, traceback.format_exc())
        raise InputError(f"{sentence(error)} (the settings do not fit; see {path})") from error


def sentence(error: ValueError) -> str:
    """The message of an error on one line, without what Keras prints around a layer's own."""
    text = _COLOURS.sub("", str(error)).strip()
    if text.startswith("Exception encountered when calling"):
        text = text.split("\n\n")[1]
    return " ".join(text.split())


def check_rankings(model: Any, names: Sequence[str]) -> None:
    """Refuses, before hours of training, a similarity that cannot rank a model's embeddings.

    Args:
        model: a `DualEncoder`.
        names: similarities by name, or "own".

    Raises:
        InputError: if one takes other embeddings, as CSD of points.
    """
    encoders = (model.image_encoder, model.caption_encoder)
    embeddings = [_zeros(encoder.output) for encoder in encoders]
    for name in names:
        if name == "own":
            continue
        try:
            similarities.get(name, model)(*embeddings)
        except ValueError as error:
            raise InputError(
                f"--test-similarities {name} cannot rank the embeddings of this model: "
                f"{sentence(error)}"
            ) from error


def _zeros(outputs):
    shapes = {key: [1, *(size or 1 for size in x.shape[1:])] for key, x in outputs.items()}
    return {key: np.zeros(shape, np.float32) for key, shape in shapes.items()}
