"""What training refuses, what it stops at, and what it warns of."""

import contextlib
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from zoo import similarities
from zoo.errors import InputError
from zoo.files.atomic import write_text

TRACEBACK = "traceback.txt"
_COLOURS = re.compile("\x1b\\[[0-9;]*m")


@contextlib.contextmanager
def one_line(folder: Path) -> Iterator[None]:
    """In here a `ValueError` becomes an `InputError` of one line; its traceback goes into
    `traceback.txt` of the run's folder."""
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
    """Refuses, before hours of training, a similarity by name that cannot rank a model's
    embeddings. Raises InputError if one takes other embeddings; `"own"` always can."""
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
    """Raises at the first step whose loss is NaN or infinite.

    ```python
    model.fit(batches, callbacks=[zoo.training.FiniteCheck(zoo.training.Resume("checkpoints"))])
    ```

    A step that mixed_float16 skips, since a gradient overflowed under its loss scale, has a finite
    loss and goes on.

    Args:
        resume: the `Resume` of the phase, which knows the last checkpoint; it holds finite weights.
        batch_of: function from a step to its global batch, for its ids; or None.
        steps: gradient steps, batches of an epoch.
        micro_batches: of a batch, see `Execution`.

    Raises:
        InputError: naming the step, the ids of its batch and the last good checkpoint.
    """

    def __init__(
        self, resume: Any, batch_of: Callable | None = None, steps: int = 1, micro_batches: int = 1
    ):
        super().__init__()
        self.resume = resume
        self.batch_of = batch_of
        self.steps = steps
        self.micro_batches = micro_batches
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        loss = (logs or {}).get("loss", 0.0)
        if np.isfinite(loss):
            return
        step = self._epoch * self.steps + batch // self.micro_batches
        checkpoints = self.resume.checkpoints()
        good = checkpoints[0][1] if checkpoints else "none yet"
        raise InputError(
            f"the loss is {float(loss)} at step {step} of {self.resume.phase!r} (epoch "
            f"{self._epoch + 1}){self._ids(step)}; the last good checkpoint: {good}. It may go on "
            "from there with a smaller learning rate, with clipping, or without mixed_float16"
        )

    def _ids(self, step):
        if self.batch_of is None:
            return ""
        batch = self.batch_of(step)
        names = [name for name in ("image_labels", "caption_labels") if name in batch]
        return "".join(f", {name} {np.asarray(batch[name]).tolist()}" for name in names)


class CollapseWarning(UserWarning):
    """All items are becoming one.

    ```python
    warnings.simplefilter("error", zoo.training.CollapseWarning)  # a collapse ends the training
    ```
    """


class CollapseCheck(keras.callbacks.Callback):
    """Warns, once, when the similarities of a batch hardly differ any more.

    ```python
    model.fit(batches, callbacks=[zoo.training.CollapseCheck(one_batch)])
    ```

    With hardest negatives from random weights everything can be drawn into one point. The loss
    then stands at twice the margin for each pair, and goes neither up nor down.

    Args:
        batch: a batch of training pairs, looked at after every epoch.
        bound: the least spread, in units of the similarity; the default is a tenth of the usual
            margin. The spread is the standard deviation of a query's similarities, averaged over
            the queries of each direction, the lesser of the two.

    Attributes:
        spread: after the last epoch, or None.
    """

    def __init__(self, batch: Any, bound: float = 0.02):
        super().__init__()
        self.batch = batch
        self.bound = bound
        self.spread = None
        self._warned = False

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        embeddings = self.model(self.batch, training=False)
        self.spread = spread(self.model.similarity(embeddings["images"], embeddings["captions"]))
        # Of a model that has become NaN nothing compares, and Keras says so itself.
        if self.spread < self.bound and not self._warned:
            self._warned = True
            warnings.warn(
                f"the similarities of a batch spread by {self.spread:.2g} only, less than "
                f"{self.bound:g}: the model is collapsing into one point. Train with the sum of "
                "hinges first, TripletRanking(mining='sum'), and with the hardest negatives from "
                "those weights on; or lower the learning rate",
                CollapseWarning,
                stacklevel=2,
            )


def spread(similarity):
    """How much the similarities of a query differ: the standard deviation over a row, mean of all
    rows, or over a column, mean of all columns, whichever is less."""
    values = np.asarray(similarity, np.float64)
    return float(min(values.std(axis=1).mean(), values.std(axis=0).mean()))


def _zeros(outputs):
    shapes = {key: [1, *(size or 1 for size in x.shape[1:])] for key, x in outputs.items()}
    return {key: np.zeros(shape, np.float32) for key, shape in shapes.items()}
