"""Halo Zoo: image-text retrieval that says how sure it is, by Keras 3 models.

`import zoo` imports Keras and registers every layer, similarity, loss, tokenizer and model, so that
`keras.saving.load_model(path)` reads what the zoo saved. `halo_search` answers questions without
Keras.
"""

import importlib.util

from halo_search import Retriever, __version__
from halo_search.errors import MissingPackageError, missing

if importlib.util.find_spec("keras") is None:
    raise MissingPackageError(f"zoo trains and opens Keras models: {missing('keras', 'models')}")

import zoo.keras_import  # noqa: F401, I001  # before all that imports Keras
import keras

from zoo import (
    confidence,
    embeddings,
    encoders,
    layers,
    losses,
    metrics,
    models,
    search,
    similarities,
)
from zoo.models import Tower

__all__ = [
    "Retriever",
    "Tower",
    "__version__",
    "confidence",
    "embeddings",
    "encoders",
    "layers",
    "losses",
    "metrics",
    "models",
    "search",
    "similarities",
]

if keras.backend.backend() == "tensorflow":  # the other rooms read data by TensorFlow
    from zoo import checkpoints, data, evaluation, plots, presets, training
    from zoo.checkpoints import from_checkpoint
    from zoo.presets import from_preset, list_presets, save_preset

    __all__ += [
        "checkpoints",
        "data",
        "evaluation",
        "from_checkpoint",
        "from_preset",
        "list_presets",
        "plots",
        "presets",
        "save_preset",
        "training",
    ]
