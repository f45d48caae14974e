"""Stops a run whose loss is no longer a number, and says where to look."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from zoo.errors import InputError


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
