"""Private parts of Keras, TensorFlow, KerasHub and tf2onnx that have no public equivalent.

Nothing else here calls them. `tests/layers/test_compat.py` notices when a new version changes one.
"""

import contextlib
import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras

from halo_search.errors import require


def all_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """A layer and every layer inside it, at any depth; `layer.layers` has the first level only."""
    return list(layer._flatten_layers())


def compiled_metrics(model: keras.Model) -> Any:
    """The metrics of `compile(metrics=…)`, None without; public `metrics` has the built ones."""
    return model._compile_metrics


def spans_workers(strategy: Any) -> bool:
    """Whether the replicas of a `tf.distribute` strategy are in several processes."""
    return strategy.extended._in_multi_worker_mode()


def clip_after_the_sum(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer clip the gradients after they are summed over the replicas, once.

    Keras clips those of each replica and sums then (3.15.1), so that `global_clipnorm` bounds
    another gradient than on one device, `num_replicas` times as large.
    """
    if getattr(optimizer, "_clips_the_sum", False):
        return
    clip, add = optimizer._clip_gradients, optimizer._all_reduce_sum_gradients

    def add_and_clip(gradients_and_variables):
        gradients, variables = zip(*add(gradients_and_variables), strict=True)
        return list(zip(clip(list(gradients)), variables, strict=True))

    optimizer._clip_gradients = lambda gradients: gradients
    optimizer._all_reduce_sum_gradients = add_and_clip
    optimizer._clips_the_sum = True


def replace_moments(
    layer: keras.layers.BatchNormalization, moments: Callable[[list[int], Any, Any], Any]
) -> None:
    """Computes a BatchNorm layer's mean and variance by `moments(axes, inputs, mask)`."""
    layer._moments = lambda inputs, mask: moments(layer._reduction_axes, inputs, mask)


def fetched_file(handle: str, name: str) -> str:
    """Fetches one file of a folder on a hub, `"hf://user/model"` or `"kaggle://…"`, by KerasHub's
    fetcher, which caches it, and returns its path here."""
    return require("keras_hub.src.utils.preset_utils", extra="models").get_file(handle, name)


def byte_pairs_of(tokenizer: keras.layers.Layer) -> Any:
    """A `tokenizers.Tokenizer` with the pieces of a KerasHub tokenizer of byte pairs, which calls
    one eagerly."""
    import tokenizers  # here: most models need none

    return tokenizers.Tokenizer.from_str(tokenizer._tokenizer.to_str())


@contextlib.contextmanager
def sound_tf2onnx(optimised: bool = True) -> Iterator[Any]:
    """The module `tf2onnx`, with Keras' fix for NumPy 2 and without an optimisation that is wrong.

    It takes the transposition of an axis of one for a reshaping to the batch that it has seen: with
    masked attention, wrong numbers for one row and an error for more (tf2onnx 1.17). Not
    `optimised`: none of its steps, but the loops of recurrent layers are no ONNX without them.
    """
    tf2onnx = require("tf2onnx", extra="models")
    with warnings.catch_warnings():  # of a name that NumPy may give another meaning
        warnings.simplefilter("ignore", FutureWarning)
        importlib.import_module("keras.src.export.tf2onnx_lib").patch_tf2onnx()
    steps = require("tf2onnx.optimizer", extra="models")._optimizers
    before, logger = dict(steps), logging.getLogger("tensorflow")
    level = logger.level
    steps.pop("optimize_transpose", None)
    if not optimised:
        steps.clear()
    logger.setLevel(logging.ERROR)  # of tables elsewhere it warns that they are not saved
    try:
        yield tf2onnx
    finally:
        logger.setLevel(level)
        steps.clear()
        steps.update(before)
