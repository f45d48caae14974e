"""The history of a run: a CSV file with a row per epoch, which survives a restart."""

import csv
import io
import os
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files.atomic import write_text

PHASE, EPOCH = "phase", "epoch"


class HistoryFile(keras.callbacks.Callback):
    """Writes the logs of every epoch to a CSV file that survives a restart.

    ```python
    model.fit(batches, epochs=3, callbacks=[zoo.training.HistoryFile("history.csv")])
    zoo.training.read_history("history.csv")["loss"]
    ```

    The columns are `phase`, `epoch` (from 1 in each phase), the logs of Keras, `learning_rate` and
    `seconds`. An epoch that is run again after a restart replaces its row, unlike in Keras'.
    """

    def __init__(self, path: str | os.PathLike, phase: str = "train"):
        super().__init__()
        self.path, self.phase = Path(path), phase

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        row = {PHASE: self.phase, EPOCH: epoch + 1}
        row.update({name: float(value) for name, value in (logs or {}).items()})
        rate = getattr(self.model.optimizer, "learning_rate", None)  # MultiOptimizer has none
        if rate is not None:
            row["learning_rate"] = float(keras.ops.convert_to_numpy(rate))
        row["seconds"] = round(time.perf_counter() - self._start, 3)
        rows = _read_rows(self.path) if self.path.exists() else []
        rows = [old for old in rows if old[PHASE] != self.phase or int(old[EPOCH]) <= epoch]
        _write_rows(self.path, [*rows, row])


def read_history(path: str | os.PathLike) -> dict[str, Any]:
    """The columns of a `history.csv`: `phase`, a list of names, and one float array for every
    other column, NaN where a phase has no such value. Raises InputError if it is no such table."""
    try:
        rows = _read_rows(Path(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    history = {PHASE: [row[PHASE] for row in rows]}
    try:
        for name in _columns(rows)[1:]:
            history[name] = np.array([float(row.get(name) or "nan") for row in rows])
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: expected numbers as {name!r} ({error})") from error
    return history


def _read_rows(path):
    """The rows of a history, dicts of strings. Raises InputError for another file."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if (reader.fieldnames or [])[:2] != [PHASE, EPOCH]:
                raise InputError(f"{path} line 1: expected the columns {PHASE}, {EPOCH}, …")
            return list(reader)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a table of UTF-8 ({error})") from error


def _write_rows(path, rows):
    """Writes the epochs, dicts with different keys, as a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=_columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def _columns(rows):
    """The names of all columns, in the order in which rows have them first."""
    # A later phase may log what an earlier one did not; the order of first appearance holds.
    return list(dict.fromkeys(name for row in rows for name in row)) or [PHASE, EPOCH]
