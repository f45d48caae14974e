"""Retrieval on the validation split after each epoch, and the weights of the best epoch."""

import functools
import json
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files.array_files import read_arrays, refusing
from halo_search.files.atomic import atomic
from zoo import evaluation, metrics
from zoo.data.records.sources import Split
from zoo.models.run_folder import RunFolder
from zoo.training.resume import to_numpy

FILE_NAME = "best.npz"


class Validation(keras.callbacks.Callback):
    """Writes retrieval on a validation split into the logs of each epoch, in percent: `val_rsum`,
    or for data with classes `val_r_precision`, the mean of both directions; where the records have
    semantics, `val_i2t_asp` and `val_t2i_asp` too.

    ```python
    model.fit(batches, callbacks=[zoo.training.Validation(split)])  # logs `val_rsum`
    ```
    """

    def __init__(self, split: Split):
        super().__init__()
        self.split = split

    @functools.cached_property
    def _semantics(self):
        """The semantic scores of all captions and images, `(images, captions)`."""
        return self.split.records.semantics.matrix()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        records = self.split.records
        encoded = evaluation.encode(self.model, records, self.split.source)
        pairs = encoded.pairs(self.model.similarity).in_memory()
        results = metrics.evaluate_retrieval(pairs, encoded.relevance)
        name = measure(records)
        logs[f"val_{name}"] = (
            results["rsum"]
            if name == "rsum"
            else np.mean([results[f"{d}_{name}"] for d in DIRECTIONS])
        )
        if records.semantics is not None:
            asp = metrics.average_semantic_precision(pairs, self._semantics)
            logs.update({f"val_{direction}_asp": 100 * asp[direction] for direction in DIRECTIONS})


DIRECTIONS = ("i2t", "t2i")


def measure(records):
    """What epochs are compared by: R-Precision for data with classes, else RSUM."""
    return "rsum" if records.class_names is None else "r_precision"


class BestEpoch(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the best validation, through every phase and restart, in
    `best.npz` of a folder. `model` is the whole one, of which a part may be fitted. Put it behind
    `Validation` in the list.

    ```python
    callbacks = [zoo.training.Validation(split), zoo.training.BestEpoch(folder, model, "training")]
    model.fit(batches, epochs=3, callbacks=callbacks)
    ```
    """

    def __init__(self, folder: RunFolder, model: keras.Model, phase: str, writes: bool = True):
        super().__init__()
        self.path = Path(folder) / FILE_NAME
        self.complete_model = model
        self.phase = phase
        self.writes = writes

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        value = next((logs[name] for name in ("val_rsum", "val_r_precision") if name in logs), None)
        if not self.writes or value is None or not np.isfinite(logs.get("loss", 0.0)):
            return
        best = read_best(self.path)
        if best is not None and best["value"] >= value:
            return
        about = {"phase": self.phase, "epoch": epoch + 1, "value": float(value)}
        weights = {str(i): to_numpy(v) for i, v in enumerate(self.complete_model.variables)}
        if not all(np.isfinite(weight).all() for weight in weights.values()):
            return
        with atomic(self.path) as temporary:
            np.savez(temporary, about=json.dumps(about), **weights)


def read_best(path: str | os.PathLike) -> dict[str, Any] | None:
    """What the best epoch was, `{"phase", "epoch", "value"}`, or None where none was kept."""
    if not Path(path).exists():
        return None
    with refusing(path), np.load(path, allow_pickle=False) as stored:
        best = json.loads(str(stored["about"]))
        return {name: best[name] for name in ("phase", "epoch", "value")}


def restore_best(path: str | os.PathLike, model: keras.Model) -> dict[str, Any] | None:
    """Gives the whole model the weights in the file of `BestEpoch`, and returns `read_best` of it,
    None without a file. Raises InputError if it is damaged or of another model."""
    best = read_best(path)
    if best is None:
        return None
    stored = read_arrays(path)
    with refusing(path):
        shapes = [stored[str(i)].shape for i in range(len(stored) - 1)]
        if shapes != [tuple(v.shape) for v in model.variables]:
            raise InputError(f"{path}: holds the best epoch of another model; choose another --out")
        for i, variable in enumerate(model.variables):
            variable.assign(keras.ops.cast(stored[str(i)], variable.dtype))
    return best
