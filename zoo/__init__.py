"""Halo Zoo: image-text retrieval that says how sure it is.

`import zoo` imports Keras and registers every layer, similarity, loss, tokenizer and model
(`zoo.training.registered`), so that `keras.saving.load_model(path)` reads what the zoo saved.

With the environment variable `HALO_LAZY=1`, `import zoo` imports nothing, and each name below
imports its module at first use (PEP 562). The command `halo` starts that way: help needs no Keras.
A program that does so and loads models imports `zoo.training.registered` first.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING

from zoo.errors import Modules, lookup

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
        plots,
        retriever,
        search,
        similarities,
        training,
    )
    from zoo.checkpoints import from_checkpoint
    from zoo.models.presets import from_preset, list_presets, save_preset
    from zoo.models.tower import Tower
    from zoo.retriever import Retriever

# Packages read these once, when they are first imported. Your own setting wins.
for _variable, _value in {
    "TF_CPP_MIN_LOG_LEVEL": "1",  # TensorFlow: without information; warnings and errors stay
    "ORT_DISABLE_TELEMETRY": "1",  # ONNX Runtime reports to Microsoft by default
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "OPENBLAS_THREAD_TIMEOUT": "4",  # NumPy's idle threads sleep: by spinning they took a core
}.items():
    os.environ.setdefault(_variable, _value)

__version__ = "0.3.0.dev0"

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
    "plots",
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
    "save_preset": "zoo.models.presets",
}
__getattr__ = lookup(__name__, {name: f"zoo.{name}" for name in __all__} | _OBJECTS)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


if not any(isinstance(finder, Modules) for finder in sys.meta_path):
    sys.meta_path.append(Modules())
if os.environ.get("HALO_LAZY") != "1":
    importlib.import_module("zoo.training.registered")
