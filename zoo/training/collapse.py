"""Notices when a model collapses, so that all similarities are alike."""

import warnings
from typing import Any

import keras
import numpy as np


class CollapseWarning(UserWarning):
    """All items are becoming one.

    ```python
    warnings.simplefilter("error", zoo.training.CollapseWarning)  # a collapse ends the training
    ```
    """


class CollapseCheck(keras.callbacks.Callback):
    """Warns, once, when the similarities of a batch hardly differ any more.

    ```python
    model.fit(batches, callbacks=[zoo.training.CollapseCheck(one_batch)])
    ```

    With hardest negatives from random weights everything can be drawn into one point. The loss
    then stands at twice the margin for each pair, and goes neither up nor down.

    Args:
        batch: a batch of training pairs, looked at after every epoch.
        bound: the least spread, in units of the similarity; the default is a tenth of the usual
            margin. The spread is the standard deviation of a query's similarities, averaged over
            the queries of each direction, the lesser of the two.

    Attributes:
        spread: after the last epoch, or None.
    """

    def __init__(self, batch: Any, bound: float = 0.02):
        super().__init__()
        self.batch = batch
        self.bound = bound
        self.spread = None
        self._warned = False

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        embeddings = self.model(self.batch, training=False)
        self.spread = spread(self.model.similarity(embeddings["images"], embeddings["captions"]))
        # Of a model that has become NaN nothing compares, and Keras says so itself.
        if self.spread < self.bound and not self._warned:
            self._warned = True
            warnings.warn(
                f"the similarities of a batch spread by {self.spread:.2g} only, less than "
                f"{self.bound:g}: the model is collapsing into one point. Train with the sum of "
                "hinges first, TripletRanking(mining='sum'), and with the hardest negatives from "
                "those weights on; or lower the learning rate",
                CollapseWarning,
                stacklevel=2,
            )


def spread(similarity):
    """How much the similarities of a query differ.

    Args:
        similarity: `(images, captions)`.

    Returns:
        The standard deviation over a row, mean of all rows, or over a column, mean of all
        columns, whichever is less.
    """
    values = np.asarray(similarity, np.float64)
    return float(min(values.std(axis=1).mean(), values.std(axis=0).mean()))
