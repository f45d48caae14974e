"""Halo Zoo: image-text retrieval that says how sure it is.

After `import zoo`, `keras.saving.load_model(path)` reads what the zoo saved: every layer,
similarity, loss, tokenizer and model is registered as soon as Keras is imported (`zoo.on_keras`).
Rooms are imported when they are first touched.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from zoo.on_keras import quick_and_quiet, when_keras_is_there
from zoo.quiet import has_cuda_device

if TYPE_CHECKING:
    from zoo import (
        checkpoints,
        collection,
        confidence,
        data,
        embeddings,
        encoders,
        evaluation,
        layers,
        losses,
        metrics,
        models,
        report,
        retriever,
        search,
        similarities,
        training,
    )
    from zoo.checkpoints import from_checkpoint
    from zoo.models.preset_folder import save_preset
    from zoo.models.presets import from_preset, list_presets
    from zoo.models.tower import Tower
    from zoo.retriever import Retriever

# TensorFlow reads this once, when it is first imported. 1 leaves out information; warnings and
# errors stay.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

__version__ = "0.2.0.dev0"

__all__ = [
    "Retriever",
    "Tower",
    "checkpoints",
    "collection",
    "confidence",
    "data",
    "embeddings",
    "encoders",
    "evaluation",
    "from_checkpoint",
    "from_preset",
    "layers",
    "list_presets",
    "losses",
    "metrics",
    "models",
    "report",
    "retriever",
    "save_preset",
    "search",
    "similarities",
    "training",
]

_OBJECTS = {  # found where they live
    "Retriever": "zoo.retriever",
    "Tower": "zoo.models.tower",
    "from_checkpoint": "zoo.checkpoints",
    "from_preset": "zoo.models.presets",
    "list_presets": "zoo.models.presets",
    "save_preset": "zoo.models.preset_folder",
}
_REGISTERED = (
    "embeddings",
    "encoders",
    "layers",
    "losses",
    "metrics",
    "models",
    "similarities",
    "training",
)


def __getattr__(name: str) -> Any:
    if name in _OBJECTS:
        return getattr(importlib.import_module(_OBJECTS[name]), name)
    if name in __all__:
        return importlib.import_module(f"zoo.{name}")
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _register() -> None:
    with quick_and_quiet():
        keras = importlib.import_module("keras")
        for room in _REGISTERED:
            importlib.import_module(f"zoo.{room}")
        if keras.backend.backend() == "tensorflow":  # the tokenizers, which saved models hold
            importlib.import_module("zoo.data")
            importlib.import_module("zoo.checkpoints")  # `from_preset` reads them
            if not has_cuda_device():
                # TensorFlow looks for one when it first computes, and then says that there is none.
                importlib.import_module("tensorflow").config.list_physical_devices()


when_keras_is_there(_register)
