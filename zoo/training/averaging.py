"""Stochastic weight averaging: the mean of the weights of the last epochs."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from zoo.layers.compat import all_layers


class StochasticWeightAveraging(keras.callbacks.Callback):
    """Averages the weights of the last epochs, and leaves the average in the model.

    ```python
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2)), np.ones((8, 1))
    average = zoo.training.StochasticWeightAveraging(start_epoch=1)
    model.fit(x, y, epochs=3, verbose=0, callbacks=[average])
    ```

    When `fit` ends, the model receives the equal mean of its trainable weights after every epoch
    from `start_epoch` (0 is the first) on, and BatchNorm statistics are estimated again, on
    `batches`: an iterable of model inputs, or a function that returns one (ValueError without one,
    if such layers train). `Resume(..., stateful_callbacks={"swa": swa})` keeps the averages.

    Reference: Izmailov et al., UAI 2018; PCME++ (Chun, ICLR 2024), section 3.1.
    """

    def __init__(self, start_epoch: int, batches: Callable | None = None):
        super().__init__()
        self.start_epoch = start_epoch
        self.batches = batches
        self.count = 0
        self.averages = []

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        if self.batches is None and training_batch_normalizations(self.model):
            raise ValueError(
                "`batches` must be given, since the model has BatchNorm layers in training; "
                "received None"
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Adds the weights to the running mean; an epoch whose loss is not finite does not
        count."""
        if epoch < self.start_epoch or not np.isfinite((logs or {}).get("loss", 0.0)):
            return
        weights = [keras.ops.convert_to_numpy(v) for v in self.model.trainable_variables]
        weights = [np.asarray(w, "float32") for w in weights]
        self.count += 1
        if self.count == 1:
            self.averages = [w.copy() for w in weights]
            return
        for average, w in zip(self.averages, weights, strict=True):
            average += (w - average) / self.count

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """Sets the weights to their averages, and estimates batch normalization anew."""
        if not self.count:
            return
        for variable, average in zip(self.model.trainable_variables, self.averages, strict=True):
            variable.assign(keras.ops.cast(average, variable.dtype))
        if self.batches is not None:
            batches = self.batches() if callable(self.batches) else self.batches
            estimate_batch_normalization(self.model, batches)

    def get_state(self) -> dict[str, Any]:
        return {"count": np.array(self.count), **{str(i): a for i, a in enumerate(self.averages)}}

    def set_state(self, state: dict[str, Any]) -> None:
        self.count = int(state["count"])
        self.averages = [np.array(state[str(i)]) for i in range(len(state) - 1)]


def training_batch_normalizations(model):
    """The BatchNorm layers of a model that train: a frozen one keeps its statistics."""
    return [
        layer
        for layer in all_layers(model)
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable
    ]


def estimate_batch_normalization(model, batches):
    """Replaces BatchNorm's moving statistics by their mean over batches, of equal weight each."""
    layers = training_batch_normalizations(model)
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    totals, count = [0.0] * (2 * len(layers)), 0
    try:
        for layer in layers:
            layer.momentum = 0.0  # after a call the moving statistics are those of the batch
        forward = tf.function(lambda batch: model(batch, training=True), reduce_retracing=True)
        for batch in batches:
            forward(batch)
            statistics = [
                keras.ops.convert_to_numpy(v)
                for layer in layers
                for v in (layer.moving_mean, layer.moving_variance)
            ]
            count += 1
            totals = [t + s for t, s in zip(totals, statistics, strict=True)]
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
    if not count:
        raise ValueError("`batches` must hold at least one batch; received none")
    for layer, mean, variance in zip(layers, totals[::2], totals[1::2], strict=True):
        layer.moving_mean.assign(mean / count)
        layer.moving_variance.assign(variance / count)
