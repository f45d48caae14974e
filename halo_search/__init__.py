"""Answers to questions about pictures and texts, each with how likely it fits; without Keras.

```python
import halo_search

photos = halo_search.packaged_photos()
retriever = halo_search.Retriever.build("photos_pfe", photos)
print(retriever.ask("two people riding horses on the beach"))
```
"""

import os

# Packages read these once, when they are first imported. Your own setting wins.
for _variable, _value in {
    "TF_CPP_MIN_LOG_LEVEL": "3",  # TensorFlow logs as errors that it found no GPU
    "ORT_DISABLE_TELEMETRY": "1",  # ONNX Runtime reports to Microsoft by default
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "OPENBLAS_THREAD_TIMEOUT": "4",  # NumPy's idle threads sleep: by spinning they took a core
}.items():
    os.environ.setdefault(_variable, _value)

__version__ = "0.3.0.dev0"

from halo_search import collection, confidence, embeddings, index, presets, towers  # noqa: E402
from halo_search.confidence import Confidence, calibrate_on  # noqa: E402
from halo_search.index import Index  # noqa: E402
from halo_search.photos import packaged_captions, packaged_photos  # noqa: E402
from halo_search.retriever import Answer, Retriever  # noqa: E402
from halo_search.towers import Tower, open_model, open_tower  # noqa: E402

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
