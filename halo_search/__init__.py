"""Answers to questions about pictures and texts, each with how likely it fits; without Keras.

```python
import halo_search

photos = halo_search.packaged_photos()
retriever = halo_search.Retriever.build("photos_pfe", photos)
print(retriever.ask("two people riding horses on the beach"))
```

Each name below imports its module at first use, as SciPy's subpackages do: the command's help, and
processes that only decode pictures, need none of them.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halo_search import collection, confidence, embeddings, index, presets, towers
    from halo_search.confidence import Confidence, calibrate_on
    from halo_search.index import Index
    from halo_search.photos import packaged_captions, packaged_photos
    from halo_search.retriever import Answer, Retriever
    from halo_search.towers import Tower, open_model, open_tower

# Packages read these once, when they are first imported. Your own setting wins.
for _variable, _value in {
    "TF_CPP_MIN_LOG_LEVEL": "3",  # TensorFlow logs as errors that it found no GPU
    "ORT_DISABLE_TELEMETRY": "1",  # ONNX Runtime reports to Microsoft by default
    "GRADIO_ANALYTICS_ENABLED": "False",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "OPENBLAS_THREAD_TIMEOUT": "4",  # NumPy's idle threads sleep: by spinning they took a core
}.items():
    os.environ.setdefault(_variable, _value)

__version__ = "0.3.0.dev0"

__all__ = [
    "Answer",
    "Confidence",
    "Index",
    "Retriever",
    "Tower",
    "__version__",
    "calibrate_on",
    "collection",
    "confidence",
    "embeddings",
    "index",
    "open_model",
    "open_tower",
    "packaged_captions",
    "packaged_photos",
    "presets",
    "towers",
]

_MODULES = {  # of what is no subpackage
    "Answer": "halo_search.retriever",
    "Confidence": "halo_search.confidence",
    "Index": "halo_search.index",
    "Retriever": "halo_search.retriever",
    "Tower": "halo_search.towers",
    "calibrate_on": "halo_search.confidence",
    "open_model": "halo_search.towers",
    "open_tower": "halo_search.towers",
    "packaged_captions": "halo_search.photos",
    "packaged_photos": "halo_search.photos",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    if name in __all__:
        return importlib.import_module(f"halo_search.{name}")
    raise AttributeError(f"module 'halo_search' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
