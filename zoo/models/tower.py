"""One side of a Keras model: files, texts, arrays or vectors to embeddings, on any devices."""

import functools
import hashlib
import threading
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from halo_search import towers
from halo_search.embeddings import measure_of
from halo_search.embeddings.arrays import joined
from halo_search.towers.tower import PICTURES_AT_ONCE, SIDES
from zoo import embeddings
from zoo.encoders.point_towers import resizing_of_tower
from zoo.layers.compat import spans_workers


class Tower(towers.Tower):
    """Encodes one side of a Keras model, see `halo_search.Tower` for its methods.

    ```python
    tower = zoo.Tower(zoo.from_preset("toy_birds_pfe"), "captions")
    tower.of_texts(["a red bird", "a blue bird"])["mean"].shape  # (2, 64)
    ```

    A tower is compiled when it is first asked, once for any batch size, and answers several
    threads. It is pickled as the name of its model, or with the model where it has no name, so that
    Ray Data and Spark take it as it is. `halo_search.open_tower` opens one by a model's name.

    Args:
        model: a `DualEncoder`.
        side: `"images"` or `"captions"`.
        batch_size: pictures at once; texts and vectors are small, and come by the hundred.
        mode, crop_fraction: how pictures become squares, see `zoo.data.images.prepare`. None: as
            the image encoder says, else the whole middle square.

    Raises:
        ValueError: if `side` is neither, TypeError if `model` is no model.
    """

    def __init__(
        self,
        model: Any,
        side: str,
        batch_size: int = PICTURES_AT_ONCE,
        mode: str | None = None,
        crop_fraction: float | None = None,
    ):
        if side not in SIDES:
            raise ValueError(f"`side` must be one of {SIDES}; received {side!r}")
        if not hasattr(model, "caption_encoder"):
            raise TypeError(
                f"`model` must be a DualEncoder; received {model!r:.60}. Open a name by "
                "zoo.from_preset, or both by halo_search.open_tower"
            )
        self.side, self.batch_size, self.model = side, batch_size, model
        self._lock, self._forward = threading.Lock(), None
        self._given = model, side, batch_size, mode, crop_fraction
        shown = resizing_of_tower(model.image_encoder) or {}
        self.resizing = (
            mode or shown.get("mode", "crop"),
            crop_fraction or shown.get("crop_fraction", 1.0),
        )
        self.reads, shape = _what(model, side)
        self.dim = shape[-1] if self.reads == "vectors" else None
        self.image_size = shape[1] or 224 if self.reads == "pictures" else None
        if getattr(self._encoder, "inputs", None):
            self.measure = measure_of(self._encoder.output, model.uncertainty_measure)

    def forward(self, batch: Any) -> Any:
        """The embeddings of a batch, by a compiled function that is made once; several threads may
        call it."""
        with self._lock:
            if self._forward is None or self._forward.encoder is not self._encoder:
                self._forward = Forward(self._encoder)
            forward = self._forward
        return forward(batch)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.tokenize(np.array(list(texts), object))

    def uncertainty(self, embedding: embeddings.Embedding) -> np.ndarray | None:
        """`(N,)` by the model's own measure, or None where the embedding has none."""
        if self.measure is None or not embeddings.has_uncertainty(embedding):
            return None
        return np.asarray(embeddings.uncertainty(embedding, self.measure))

    @functools.cached_property
    def model_sha256(self) -> str:
        """The hash of all weights, and of how pictures become squares: it identifies vectors."""
        return weights_sha256(self.model, repr((self.side, *self.resizing)))

    def _reads_in_words(self):
        if self.reads == "features":
            return f"features of shape {tuple(self._encoder.inputs[0].shape[1:])}"
        return self.reads

    @property
    def _encoder(self):
        """The model's encoder of this side."""
        is_image = self.side == "images"
        return self.model.image_encoder if is_image else self.model.caption_encoder

    def _joined(self, parts):
        """The embeddings of several batches as one."""
        if parts and not isinstance(parts[0], dict):
            return keras.tree.map_structure(lambda *values: np.concatenate(values), *parts)
        return joined(parts)

    def __reduce__(self):
        """Pickles the name of a model that can be opened again, else the model."""
        model, side, batch_size, *resizing = self._given
        if model.origin is None:
            return type(self), self._given
        return _opened_again, (model.origin, side, batch_size, *resizing)


def _opened_again(origin, *others):
    from zoo.presets import from_preset  # which opens models, and so knows of towers

    return Tower(from_preset(origin), *others)


def weights_sha256(model: keras.Model, facts: str = "") -> str:
    """The hash of all weights of a model, and of a text beside them."""
    digest = hashlib.sha256(facts.encode())
    for weights in model.get_weights():
        digest.update(repr((weights.shape, weights.dtype)).encode())
        digest.update(np.ascontiguousarray(weights).tobytes())
    return digest.hexdigest()


def _what(model, side):
    """`(what a side takes, the shape of it)`."""
    encoder = model.caption_encoder if side == "captions" else model.image_encoder
    inputs = getattr(encoder, "inputs", None)
    shape = tuple(inputs[0].shape) if inputs else (None, None, None, 3)
    if side == "captions":
        if model.reads_caption_vectors:
            return "vectors", shape
        return ("ids" if model.tokenizer is None else "texts"), shape
    if len(shape) == 2:
        return "vectors", shape
    return ("pictures" if len(shape) == 4 and shape[1] == shape[2] else "features"), shape


class Forward:
    """Encodes batches, compiled once for any batch size, and from several threads at a time.

    Under a strategy the replicas of this process encode each batch together; of several workers
    each encodes all by itself, on its first device.

    ```python
    model = zoo.from_preset("toy_birds_pfe")
    zoo.models.Forward(model.image_encoder)(np.zeros((2, 64, 64, 3)))["mean"].shape  # (2, 64)
    ```

    Output: what the encoder, a `keras.Model` or a layer, returns of a batch, as NumPy arrays;
        floats are float32.
    """

    def __init__(self, encoder: keras.layers.Layer):
        self.encoder = encoder
        self._lock, self._compiled, self._rows = threading.Lock(), None, None

    def __call__(self, batch: Any) -> Any:
        if keras.backend.backend() != "tensorflow":
            return _on_host(self.encoder(ops.convert_to_tensor(batch), training=False))
        strategy = _strategy_of(self.encoder)
        with self._lock:  # tracing is not for threads
            if self._compiled is None:
                self._compiled = _traced(self.encoder, strategy)
        if strategy is not None:
            return self._on_replicas(batch, strategy)
        taken = _taken(self.encoder)
        batch = ops.convert_to_tensor(batch, None if taken is None else taken.dtype)
        return _on_host(self._compiled(batch))

    def _on_replicas(self, batch, strategy):
        """Every replica encodes its share, of the first batch's shape, filled up with zeros: a TPU
        compiles a program per shape, and runs what is outside of `strategy.run` on its host."""
        import tensorflow as tf

        count = strategy.num_replicas_in_sync
        rows = ops.convert_to_numpy(batch)
        self._rows = max(self._rows or 0, -(-len(rows) // count))
        shares = np.zeros((count, self._rows, *rows.shape[1:]), rows.dtype)
        shares.reshape(count * self._rows, *rows.shape[1:])[: len(rows)] = rows
        outputs = self._compiled(
            strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(shares[context.replica_id_in_sync_group])
            )
        )
        return keras.tree.map_structure(
            functools.partial(_of_replicas, strategy, len(rows)), outputs
        )


def _traced(encoder, strategy):
    """The encoder as a compiled function of a batch, on the replicas of a strategy if there is
    one."""
    import tensorflow as tf

    def forward(batch):
        return encoder(batch, training=False)

    if strategy is not None:
        return tf.function(lambda rows: strategy.run(forward, args=(rows,)))
    taken = _taken(encoder)
    if taken is None:
        return tf.function(forward, reduce_retracing=True)
    spec = tf.TensorSpec((None, *taken.shape[1:]), taken.dtype)
    compiled = tf.function(forward, input_signature=[spec])
    compiled.get_concrete_function()
    return compiled


def _taken(encoder):
    """The one input that an encoder says it takes, or None."""
    inputs = getattr(encoder, "inputs", None)
    return inputs[0] if inputs and len(inputs) == 1 else None


def _strategy_of(encoder):
    """The strategy whose replicas are all of this process, or None. `predict` would wait for the
    other workers of a cluster; each encodes rows of its own."""
    import tensorflow as tf

    strategy = getattr(encoder, "distribute_strategy", None)
    if strategy is None:
        return None
    several = strategy.num_replicas_in_sync > 1 or isinstance(strategy, tf.distribute.TPUStrategy)
    return strategy if several and not spans_workers(strategy) else None


def _of_replicas(strategy, count, values):
    """The first rows of what all replicas give, in their order."""
    parts = strategy.experimental_local_results(values)
    return np.concatenate([_array(part) for part in parts])[:count]


def _on_host(outputs):
    return keras.tree.map_structure(_array, outputs)


def _array(values):
    """A tensor as a NumPy array; floats as float32."""
    array = ops.convert_to_numpy(values)
    return array if array.dtype.kind in "biu" else array.astype(np.float32, copy=False)
