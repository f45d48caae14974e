"""Halo Zoo: image-text retrieval that says how sure it is.

`import zoo` registers every layer, similarity, loss, tokenizer and model, so that
`keras.saving.load_model(path)` reads what the zoo saved. `zoo.confidence`, `zoo.evaluation`,
`zoo.metrics`, `zoo.report` and `zoo.search` are imported when first touched, since they need more
than Keras; so is `zoo.data` on another backend than TensorFlow.
"""

import gc
import importlib
import os
from typing import Any

from zoo.errors import InputError
from zoo.quiet import has_cuda_device, without_notes

# TensorFlow reads this once, when it is first imported. 1 leaves out information; warnings and
# errors stay.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# Importing makes millions of objects and no garbage; to look for some among them took a quarter
# of the time.
_collects = gc.isenabled()
gc.disable()
try:
    with without_notes():
        try:
            import keras
        except (ImportError, ValueError) as error:  # Keras' own names no variable to mend
            if isinstance(error, ValueError) or os.environ.get("KERAS_BACKEND") == error.name:
                raise InputError(
                    "KERAS_BACKEND, or keras.json, must name a backend that is installed, as "
                    f"tensorflow; received {os.environ.get('KERAS_BACKEND', 'none')!r}: {error}"
                ) from error
            raise

        from zoo import embeddings, encoders, layers, losses, models, similarities, training
        from zoo.models.preset_folder import save_preset
        from zoo.models.presets import from_preset, list_presets

        if keras.backend.backend() == "tensorflow":  # the tokenizers, which saved models hold
            importlib.import_module("zoo.data")
            if not has_cuda_device():
                # TensorFlow looks for one when it first computes, and then says that there is none.
                importlib.import_module("tensorflow").config.list_physical_devices()
finally:
    if _collects:
        gc.enable()

__version__ = "0.2.0.dev0"

__all__ = [
    "embeddings",
    "encoders",
    "from_preset",
    "layers",
    "list_presets",
    "losses",
    "models",
    "save_preset",
    "similarities",
    "training",
]

_OBJECTS = {"Retriever": "zoo.retriever"}  # found where they live, when first touched
_LAZY = (
    "collection",
    "confidence",
    "data",
    "evaluation",
    "metrics",
    "report",
    "retriever",
    "search",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"zoo.{name}")
    if name in _OBJECTS:
        return getattr(importlib.import_module(_OBJECTS[name]), name)
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY, *_OBJECTS, "__version__"])
