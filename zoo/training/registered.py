"""Imports every room with classes that Keras has to know by name, which registers them.

After it `keras.saving.load_model(path)` reads whatever the zoo saved. `import zoo` does it, and so
do the commands that load a model, after they have read their flags. It is here, since training is
the highest of these rooms.
"""

import keras

from zoo import (  # noqa: F401
    embeddings,
    encoders,
    layers,
    losses,
    metrics,
    models,
    similarities,
)

if keras.backend.backend() == "tensorflow":  # the tokenizers of saved models
    from zoo import checkpoints, data  # noqa: F401
