"""One phase of training: Keras' `fit`, from where the run stopped if it did."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from zoo.cli import verbosity
from zoo.files import RunFolder
from zoo.training.checks import FiniteCheck
from zoo.training.execution import Execution
from zoo.training.history import HistoryFile
from zoo.training.resume import Resume


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

    Args:
        folder: the `RunFolder`.
        model: built and compiled for this phase.
        phase: its name, letters, digits and `_`. Each phase has checkpoints of its own.
        stream: function from the number of the first step to an endless `tf.data.Dataset` of
            global batches from that step on, such as a `zoo.data.Stream`; if it also takes
            `shard`, of a worker's share of them, see `zoo.training.distribute`.
        epochs: of this phase; 0 leaves it out.
        steps: batches an epoch.
        callbacks: further ones; what they add to the logs is in the history.
        stateful_callbacks: callbacks by name whose state goes into the checkpoints, see `Resume`;
            they are called before it.
        execution: on which replicas, and how compiled; an `Execution`, or None for one device.

    Raises:
        InputError: if the loss is no longer finite, or nothing can be written.
    """
    if not epochs:
        return
    execution = execution or Execution()
    micro_batches = execution.gradient_accumulation
    execution.prepare(model)
    resume = Resume(
        folder.checkpoints, phase, stateful_callbacks=stateful_callbacks, writes=execution.is_chief
    )
    done = resume.restore(model)
    execution.agree(done)
    if done and execution.is_chief:
        print(f"{phase}: {done} of {epochs} epochs are done already")
    check = FiniteCheck(resume, lambda step: next(iter(stream(step))), steps, micro_batches)
    model.fit(
        execution.batches(stream, done * steps),
        epochs=epochs,
        initial_epoch=done,
        steps_per_epoch=steps * micro_batches,
        shuffle=False,  # the stream is shuffled already
        verbose=verbosity(shown=execution.is_chief),
        callbacks=[
            check,
            *callbacks,
            *([HistoryFile(folder.history_path, phase)] if execution.is_chief else []),
            *execution.callbacks(folder, phase),
            *(stateful_callbacks or {}).values(),
            resume,
        ],
    )
