"""What training refuses before it starts, and what it stops at."""

import contextlib
import re
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files.atomic import write_text
from zoo import similarities

TRACEBACK = "traceback.txt"
_COLOURS = re.compile("\x1b\\[[0-9;]*m")


@contextlib.contextmanager
def one_line(folder: Path) -> Iterator[None]:
    """In here a `ValueError` becomes an `InputError` of one line; its traceback goes to a file."""
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
    """Raises InputError, before hours of training, for a similarity that cannot rank them."""
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


class FiniteCheck(keras.callbacks.Callback):
    """Raises InputError at the first step whose loss is NaN or infinite, with the last checkpoint
    of a `Resume`, by the number of steps of an epoch.

    ```python
    model.fit(batches, callbacks=[zoo.training.FiniteCheck(zoo.training.Resume("checkpoints"))])
    ```
    """

    def __init__(self, resume: Any, steps: int = 1):
        super().__init__()
        self.resume, self.steps = resume, steps
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Raises InputError if the loss is NaN or infinite, with the last good checkpoint."""
        loss = (logs or {}).get("loss", 0.0)
        if np.isfinite(loss):
            return
        checkpoints = self.resume.checkpoints()
        good = checkpoints[0][1] if checkpoints else "none yet"
        raise InputError(
            f"the loss is {float(loss)} at step {self._epoch * self.steps + batch} of "
            f"{self.resume.phase!r} (epoch {self._epoch + 1}); the last good checkpoint: {good}. "
            "It may go on from there with a smaller learning rate, with clipping, or without "
            "mixed_float16"
        )


def _zeros(outputs):
    """An embedding of one item of zeros, as an encoder returns it; unknown sizes are 1."""
    shapes = {key: [1, *(size or 1 for size in x.shape[1:])] for key, x in outputs.items()}
    return {key: np.zeros(shape, np.float32) for key, shape in shapes.items()}
