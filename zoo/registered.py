"""Imports every room with classes that Keras has to know by name, which registers them.

After it `keras.saving.load_model(path)` reads whatever the zoo saved. `import zoo` does it, and so
do the commands that load a model, after they have read their flags.
"""

import os

from zoo.errors import InputError

try:
    import keras
except (ImportError, ValueError) as error:
    backend = os.environ.get("KERAS_BACKEND", "none")
    # Keras' own error names no variable to change.
    if isinstance(error, ValueError) or error.name == backend:
        raise InputError(
            "KERAS_BACKEND, or keras.json, must name an installed backend, as tensorflow; "
            f"received {backend!r}: {error}"
        ) from error
    raise

from zoo import (  # noqa: F401
    embeddings,
    encoders,
    layers,
    losses,
    metrics,
    models,
    similarities,
    training,
)

if keras.backend.backend() == "tensorflow":  # the tokenizers of saved models
    from zoo import checkpoints, data  # noqa: F401
