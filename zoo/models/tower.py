"""One side of a model: files, texts, arrays or vectors to embeddings, on whatever devices."""

import functools
import hashlib
import os
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import numpy as np
from keras import ops

from zoo import embeddings
from zoo.embeddings import Embedding
from zoo.embeddings.arrays import joined
from zoo.errors import InputError
from zoo.layers.compat import spans_workers
from zoo.models.preset_folder import DOORS

SIDES = ("images", "captions")
_MANY = {"texts": 256, "vectors": 4096}  # at once


class Tower:
    """Encodes one side of a model, batch by batch.

    ```python
    tower = zoo.Tower("toy_birds_pfe", "captions")
    tower.of_texts(["a red bird", "a blue bird"])["mean"].shape  # (2, 64)
    ```

    Every method returns an embedding: a dict of arrays, floats as float32. A tower is compiled when
    it is first asked, once for any batch size, and answers several threads. It is pickled as the
    name of its model, or with the model where it has no name, so that Ray Data, Spark and Beam take
    it as it is.

    Args:
        model: a `DualEncoder`, or whatever `zoo.from_preset` takes (else an InputError).
        side: `"images"` or `"captions"`.
        batch_size: pictures at once; texts and vectors are small, and come by the hundred.
        mode, crop_fraction: how pictures become squares, see `zoo.data.images.prepare`. None: as
            the model says, see `zoo.evaluation.resizing_of`.

    Attributes:
        reads: what the side takes: `"pictures"`, `"texts"`, `"vectors"`, `"features"` of pictures
            or `"ids"` of words.
        dim: channels of stored vectors, or None.
        measure: of the side's uncertainty, see `zoo.embeddings.uncertainty`; None of points.
    """

    def __init__(
        self,
        model: Any,
        side: str,
        batch_size: int = 16,
        mode: str | None = None,
        crop_fraction: float | None = None,
    ):
        if side not in SIDES:
            raise ValueError(f"`side` must be one of {SIDES}; received {side!r}")
        self.side, self.batch_size = side, batch_size
        self._lock, self._forward, name = threading.Lock(), None, None
        if not hasattr(model, "caption_encoder"):
            model = DOORS["open"](model)
            name = model.origin
        self.model = model
        self._given = model, side, batch_size, mode, crop_fraction
        shown = DOORS["shown"](model, name)
        self.resizing = (
            mode or shown.get("mode", "crop"),
            crop_fraction or shown.get("crop_fraction", 1.0),
        )
        self.reads, shape = _what(model, side)
        self.dim = shape[-1] if self.reads == "vectors" else None
        self.image_size = shape[1] or 224 if self.reads == "pictures" else None
        self.measure = None
        if getattr(self._encoder, "inputs", None):
            output = self._encoder.output
            self.measure = embeddings.measure_of(output, model.uncertainty_measure)

    def of_files(
        self,
        files: Sequence[Any],
        names: Sequence[str] | None = None,
        progress: Any = False,
        rejected: MutableMapping[int, str] | None = None,
    ) -> Embedding:
        """The embedding of pictures, decoded side by side while the network encodes others. Raises
        InputError if one cannot be read, by its name; or if the model reads no pictures.

        Two batches of pixels are in memory at most, however many files there are.

        Args:
            files: what `zoo.files.decoding.decoded` takes: paths, the bytes of files, Pillow
                images, arrays of any size.
            names: what to call each in an error; default: its path, or its row.
            progress: True draws a bar; a function is told how many more are done.
            rejected: gets the row and the reason of each that cannot be read, which is then left
                out. None: the first one is an error.
        """
        from zoo.files.folders import printable  # here, for backends without TensorFlow

        self.expect("pictures")
        files = list(files)

        def told(row, reason):
            is_path = isinstance(files[row], (str, os.PathLike))
            name = str(files[row]) if is_path else f"item {row}"
            name = name if names is None else names[row]
            reason = str(reason).removeprefix(f"{files[row]}: ")
            reason = reason.removeprefix(f"{printable(str(files[row]))}: ")
            if rejected is None:
                raise InputError(f"{printable(name)}: {reason}")
            rejected[row] = reason

        batches = _decoded(self.fitted, files, self.batch_size, told)
        return self._encoded(batches, len(files), progress)

    def of_texts(self, texts: Sequence[str], progress: Any = False) -> Embedding:
        """The embedding of strings. Raises InputError if the model has no tokenizer, or a text
        holds a lone surrogate."""
        self.expect("texts")
        texts = np.array([texts] if isinstance(texts, str) else list(texts), object)
        for text in texts:
            if any("\ud800" <= one <= "\udfff" for one in text):
                raise InputError(f"a text must be Unicode; received a lone surrogate in {text!r}")
        batches = _sliced(texts, self._many("texts"))
        batches = ((self.model.tokenize(batch), done) for batch, done in batches)
        return self._encoded(batches, len(texts), progress)

    def of_vectors(self, vectors: Any, progress: Any = False) -> Embedding:
        """The embedding of stored vectors `(N, dim)`. Raises InputError if the model reads none, or
        of another dim."""
        self.expect("vectors")
        if np.ndim(vectors) != 2 or vectors.shape[1] != self.dim:
            raise InputError(
                f"expected vectors of {self.dim} channels, which the model takes for {self.side}; "
                f"received shape {tuple(np.shape(vectors))}"
            )
        batches = _sliced(vectors, self._many("vectors"))
        return self._encoded(batches, len(vectors), progress)

    def of_arrays(self, arrays: Any, batch_size: int | None = None, progress: Any = False) -> Any:
        """The embedding of what the encoder itself takes.

        Args:
            arrays: pictures `(N, size, size, 3)` of 0 … 255, features, token ids or vectors; or
                batches of that, such as a `tf.data.Dataset`; at least one item, else a ValueError.
            batch_size: of an array; default: by its kind.
            progress: as of `of_files`.
        """
        total = None
        if hasattr(arrays, "shape"):
            total = len(arrays)
            small = {"ids": "texts", "texts": "texts", "vectors": "vectors"}.get(self.reads)
            size = batch_size or (self._many(small) if small else self.batch_size)
            batches = _sliced(arrays, size)
        else:
            batches = ((batch, len(batch)) for batch in arrays)
        return self._encoded(batches, total, progress)

    def fitted(self, picture: Any) -> np.ndarray:
        """A picture, as one of `of_files`, as the encoder is shown it, uint8 `(size, size, 3)`.
        Raises InputError if it cannot be read, or the model reads no pictures."""
        from zoo.files.decoding import decoded  # here, for backends without TensorFlow

        self.expect("pictures")
        return _fit(self.image_size, *self.resizing)(decoded(picture)).numpy()

    def uncertainty(self, embedding: Embedding) -> np.ndarray | None:
        """`(N,)` by the model's own measure, or None where the embedding has none."""
        if self.measure is None or not embeddings.has_uncertainty(embedding):
            return None
        return np.asarray(embeddings.uncertainty(embedding, self.measure))

    @functools.cached_property
    def model_sha256(self) -> str:
        """The hash of all weights, and of how pictures become squares: it identifies vectors."""
        return weights_sha256(self.model, repr((self.side, *self.resizing)))

    def _many(self, what):
        return max(_MANY[what], self.batch_size)

    def expect(self, wanted: str) -> None:
        """Raises InputError if the side reads something else than `wanted`, a value of `reads`."""
        if self.reads == wanted:
            return
        if wanted == "texts":
            raise InputError("the model has no tokenizer, so it cannot be asked in words")
        found = self.reads
        if found == "features":
            found += f" of shape {tuple(self._encoder.inputs[0].shape[1:])}"
        raise InputError(f"the model reads {found} for {self.side}, not {wanted}")

    @property
    def _encoder(self):
        is_image = self.side == "images"
        return self.model.image_encoder if is_image else self.model.caption_encoder

    def _encoded(self, batches, total, progress):
        """The parts of all batches, joined."""
        if total == 0:
            raise ValueError("there must be at least one item to encode; received none")
        with self._lock:
            if self._forward is None or self._forward.encoder is not self._encoder:
                self._forward = Forward(self._encoder)
            forward = self._forward
        advance, parts = _advance(progress, total), []
        for batch, done in batches:
            if len(batch):
                parts.append(forward(batch))
            advance(done)
        if parts and not isinstance(parts[0], dict):
            return keras.tree.map_structure(lambda *values: np.concatenate(values), *parts)
        return joined(parts)

    def __reduce__(self):
        model, *others = self._given
        return type(self), (model if model.origin is None else model.origin, *others)


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


@functools.cache
def _fit(size, mode, crop_fraction):
    import tensorflow as tf

    from zoo.files import images

    fit = tf.function(
        lambda picture: images.fit(picture, size, mode, crop_fraction),
        input_signature=[tf.TensorSpec((None, None, 3), tf.uint8)],
        autograph=False,
    ).get_concrete_function()
    return lambda picture: fit(tf.constant(picture))


def _sliced(items: Any, size: int) -> Iterator[tuple[Any, int]]:
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        yield batch, len(batch)


def _decoded(decode, files, size, told) -> Iterator[tuple[Any, int]]:
    """Batches of decoded files; the next one is decoded while the last one is used."""

    def attempt(file):
        try:
            return decode(file)
        except InputError as error:
            return error

    starts = range(0, len(files), size)
    if len(files) == 1:
        futures, pool = iter([[attempt(files[0])]]), None
    else:
        pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1))
        futures = (pool.map(attempt, files[start : start + size]) for start in starts)
    try:
        waiting = next(futures)
        for start in starts:
            found = list(waiting)
            waiting = next(futures, None)  # submitted before the batch is encoded
            good = []
            for row, one in enumerate(found, start):
                if isinstance(one, InputError):
                    told(row, one)
                else:
                    good.append(one)
            yield (np.stack(good) if good and isinstance(good[0], np.ndarray) else good), len(found)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _advance(progress: Any, total: int | None):
    if callable(progress):
        return progress
    if not progress:
        return lambda count: None
    bar = keras.utils.Progbar(total, unit_name="item")
    return lambda count: bar.add(count)


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
        found = self._compiled(
            strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(shares[context.replica_id_in_sync_group])
            )
        )
        return keras.tree.map_structure(functools.partial(_of_replicas, strategy, len(rows)), found)


def _traced(encoder, strategy):
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
    array = ops.convert_to_numpy(values)
    return array if array.dtype.kind in "biu" else array.astype(np.float32, copy=False)
