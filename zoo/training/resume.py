"""Checkpoints from which training resumes exactly as if it had never stopped."""

import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files.array_files import read_arrays
from halo_search.files.atomic import atomic
from halo_search.files.written import Written
from zoo.cli import verbosity
from zoo.models.run_folder import RunFolder
from zoo.training.checks import FiniteCheck
from zoo.training.execution import Execution
from zoo.training.history import HistoryFile

KEPT = 2  # checkpoints of a phase: the disk may damage the last


class Resume(keras.callbacks.Callback):
    """Writes the whole state of training after every epoch, and restores it.

    A checkpoint, `{phase}-{epoch:05d}.npz`, has every variable of the model (with BatchNorm
    statistics and the states of seed generators, which `keras.callbacks.BackupAndRestore` leaves
    out, so that dropout repeats its first epoch) and of the optimizer, and the state of
    `stateful_callbacks`; the last two are kept.

    ```python
    for phase in (warm_up, fine_tuning):
        model.compile(...)
        resume = Resume(run.checkpoints, phase.name)
        done = resume.restore(model)
        model.fit(batches(first_epoch=done), initial_epoch=done, epochs=phase.epochs,
                  callbacks=[HistoryFile(run.history_path, phase.name), resume])
    ```

    The data of an epoch must depend on nothing but the seed and the number of the epoch. Put it
    last among the callbacks, so that it saves what they did.

    Args:
        folder: where the checkpoints lie, `RunFolder.checkpoints`.
        phase: its name, letters, digits and `_`. Each has its own checkpoints.
        stateful_callbacks: by name, with `get_state() -> dict of arrays` and `set_state(dict)`.
        writes: whether to write; of several workers the chief alone does.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        phase: str = "train",
        stateful_callbacks: dict[str, Any] | None = None,
        writes: bool = True,
    ):
        super().__init__()
        self.folder = Path(folder)
        self.phase = phase
        self.stateful_callbacks = dict(stateful_callbacks or {})
        self.writes = writes

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Those of this phase as `[(epoch, path)]`, the latest first."""
        pattern = re.compile(rf"{self.phase}-(\d+)\.npz")
        matches = [(pattern.fullmatch(path.name), path) for path in self.folder.glob("*.npz")]
        return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)

    def restore(self, model: keras.Model) -> int:
        """Puts the model and its optimizer, built and compiled for this phase, into the state of
        the latest checkpoint, and returns how many of its epochs are done, 0 without one. Raises
        InputError if the checkpoint is of another model, or none can be read."""
        for epoch, path in self.checkpoints():
            try:
                state = _read(path)
            except (OSError, ValueError) as error:
                warnings.warn(f"{path} cannot be read and is passed over: {error}", stacklevel=2)
                continue
            self._apply(model, state, path)
            return epoch
        if self.checkpoints():
            raise InputError(f"no checkpoint of {self.phase!r} in {self.folder} can be read")
        return 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        loss = (logs or {}).get("loss", 0.0)
        if not self.writes or not np.isfinite(loss):
            return  # the last good state must stay the last
        self.save(epoch + 1)

    def save(self, epoch: int) -> None:
        """Writes the checkpoint after `epoch` epochs and deletes those that are too old. NaN is not
        written: the epoch's last step made it."""
        state = {f"model/{i}": to_numpy(v) for i, v in enumerate(self.model.variables)}
        optimizer = self.model.optimizer.variables
        state.update({f"optimizer/{i}": to_numpy(v) for i, v in enumerate(optimizer)})
        if not all(np.isfinite(v).all() for v in state.values()):
            return
        for name, callback in self.stateful_callbacks.items():
            state.update({f"callbacks/{name}/{k}": v for k, v in callback.get_state().items()})
        about = {"phase": self.phase, "epoch": epoch}
        state["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        written, path = Written(self.folder), self.folder / f"{self.phase}-{epoch:05d}.npz"
        written.claim(path.name)
        with atomic(path) as temporary:
            np.savez(temporary, **state)
        written.remove(path.name for _, path in self.checkpoints()[KEPT:])

    def _apply(self, model, state, path):
        """Sets model, optimizer and callbacks to a checkpoint's state. Raises InputError, before
        anything changes, if it is of another model."""
        if not model.optimizer.built:
            with model.distribute_strategy.scope():  # where its variables have to be, too
                model.optimizer.build(model.trainable_variables)
        groups = {"model": model.variables, "optimizer": model.optimizer.variables}
        for group, variables in groups.items():
            _check(variables, _group(state, group), f"{path}: the {group}")
        for group, variables in groups.items():
            values = _group(state, group)
            for i, variable in enumerate(variables):
                variable.assign(keras.ops.cast(values[str(i)], variable.dtype))
        for name, callback in self.stateful_callbacks.items():
            callback.set_state(_group(state, f"callbacks/{name}"))


def _read(path):
    """The arrays of a checkpoint. Raises ValueError if the file is none."""
    state = read_arrays(path)
    if "about" not in state:
        raise ValueError("it is no checkpoint of a run")
    return state


def _group(state, group):
    """The arrays whose names begin with `group/`, without it."""
    prefix = f"{group}/"
    return {name[len(prefix) :]: v for name, v in state.items() if name.startswith(prefix)}


def _check(variables, values, what):
    """Raises InputError unless there is an array of the right shape for each variable."""
    hint = "it belongs to another model; choose another --out"
    if len(variables) != len(values):
        raise InputError(f"{what} has {len(values)} variables, not {len(variables)}: {hint}")
    for i, variable in enumerate(variables):
        shape = values[str(i)].shape
        if tuple(variable.shape) != shape:
            raise InputError(
                f"{what} has {shape} for {variable.path}, not {tuple(variable.shape)}: {hint}"
            )


def to_numpy(variable):
    """A variable's value as an array; bfloat16 as float32."""
    value = keras.ops.convert_to_numpy(variable)
    # NumPy's archives know no bfloat16; every bfloat16 is a float32.
    return value.astype("float32") if value.dtype.kind == "V" else value


def fit_phase(
    folder: RunFolder,
    model: keras.Model,
    phase: str,
    stream: Callable,
    epochs: int,
    steps: int,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    stateful_callbacks: dict[str, Any] | None = None,
    execution: Execution | None = None,
) -> None:
    """Fits a compiled model for some epochs, with a checkpoint and a row of history after each.
    Raises InputError if the loss is no longer finite, or nothing can be written.

    Args:
        folder: the `RunFolder`.
        model: built and compiled for this phase.
        phase, epochs, steps: its name, letters, digits and `_`; its epochs, and batches of each.
        stream: see `zoo.training.distribute`; endless.
        callbacks: further ones; what they add to the logs is in the history.
        stateful_callbacks: see `Resume`.
        execution: on which replicas, and how compiled; None for one device.
    """
    if not epochs:
        return
    execution = execution or Execution()
    execution.prepare(model)
    resume = Resume(
        folder.checkpoints, phase, stateful_callbacks=stateful_callbacks, writes=execution.is_chief
    )
    done = resume.restore(model)
    execution.agree(done)
    if done and execution.is_chief:
        print(f"{phase}: {done} of {epochs} epochs are done already")
    model.fit(
        execution.batches(stream, done * steps),
        epochs=epochs,
        initial_epoch=done,
        steps_per_epoch=steps,
        shuffle=False,  # the stream is shuffled already
        verbose=verbosity(shown=execution.is_chief),
        callbacks=[
            FiniteCheck(resume, steps),
            *callbacks,
            *([HistoryFile(folder.history_path, phase)] if execution.is_chief else []),
            *(stateful_callbacks or {}).values(),
            resume,
        ],
    )
