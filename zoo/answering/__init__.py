"""Keras models behind the interface of `halo_search`: what `keras_models()` there returns.

`halo_search` opens a model here where it has no ONNX towers, and asks for what only Keras computes:
similarities that no search space ranks, probes of photos with captions, and ONNX towers.
"""

from typing import Any

import keras

from zoo import similarities
from zoo.answering.keras_model import KerasModel
from zoo.commands.evaluate import evaluate
from zoo.commands.probes import write_probes
from zoo.commands.report import report
from zoo.data import captioned_folder
from zoo.evaluation.runs import probes_of
from zoo.similarities.base import Similarity

__all__ = [
    "KerasModel",
    "captioned_folder",
    "evaluate",
    "open_model",
    "probes_of",
    "report",
    "similarity",
    "stored_similarity",
    "write_probes",
]


def open_model(model: Any) -> KerasModel:
    """The `KerasModel` of a `DualEncoder`, or of whatever `zoo.from_preset` takes."""
    return KerasModel.of(model)


def similarity(name: str) -> Similarity:
    """A similarity by name, see `zoo.similarities.get`."""
    return similarities.get(name)


def stored_similarity(identity: dict[str, Any]) -> Any:
    """The layer or function that an index was saved with, of its `identity`."""
    if "function" in identity:
        function = getattr(similarities, identity["function"], None)
        if function is None:
            raise ValueError(f"there is no function zoo.similarities.{identity['function']}")
        return function
    layer = keras.saving.deserialize_keras_object(identity["layer"])
    layer.set_weights([keras.ops.convert_to_numpy(weight) for weight in identity["weights"]])
    return layer
