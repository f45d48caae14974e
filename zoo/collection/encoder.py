"""A model that reads what a source holds: pictures as bytes, texts, rows of vectors."""

import functools
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from zoo import embeddings
from zoo.arrays import joined, parts_of
from zoo.collection import contents, places
from zoo.collection.shards import Encoded
from zoo.collection.work import ROWS, Work, read
from zoo.data import images
from zoo.data.reading.pictures import why_unreadable
from zoo.data.reading.vector_files import read_vectors
from zoo.errors import InputError
from zoo.evaluation.runs import resizing_of
from zoo.models import DualEncoder
from zoo.models.presets import from_preset

EXPORT_FILE = "export.json"
_MANY = {"captions": 256, "vectors": 4096}  # at once


class Encoder:
    """Encodes pieces of work, one side of a model.

    ```python
    encoder = zoo.collection.Encoder.load("toy_birds_pfe", "captions")
    (work,) = zoo.collection.of_items("texts", ["first"], ["a red bird"])
    encoder(work).arrays["mean"]  # (1, 64)
    ```

    Args:
        model: a `DualEncoder`.
        side: `"images"` or `"captions"`.
        batch_size: pictures at once.
        mode, crop_fraction: how pictures become squares, see `zoo.evaluation.resizing_of`.

    Raises:
        InputError: if the model reads features of pictures.
    """

    _measures = True  # the uncertainty, where the model gives none

    def __init__(
        self,
        model: DualEncoder,
        side: str,
        batch_size: int = 64,
        mode: str = "crop",
        crop_fraction: float = 1.0,
    ):
        self.side, self.batch_size = side, batch_size
        self.of_vectors = reads_vectors(model, side)
        if self.of_vectors or side == "captions":
            encode = model.encode_captions if side == "captions" else model.encode_images
            many = _MANY["vectors" if self.of_vectors else "captions"]
            self._encode = lambda batch: parts_of(encode(batch, batch_size=many))
            tower = model.caption_encoder if side == "captions" else model.image_encoder
            self.dim = tower.input_shape[-1] if self.of_vectors else None
        else:
            self._encode = _of_pictures(model, mode, crop_fraction)
        self._measure = model.uncertainty_measure
        self._facts = model, repr((side, mode, crop_fraction))

    @functools.cached_property
    def model_sha256(self) -> str:
        """The hash of all weights, and of how pictures become squares: it knows the vectors."""
        return weights_sha256(*self._facts)

    @classmethod
    def load(cls, model: Any, side: str, batch_size: int = 64) -> "Encoder":
        """The encoder of a preset, a run folder or an exported model.

        Args:
            model: a name that `zoo.from_preset` takes, or the folder of an exported version.
            side, batch_size: as above.

        Raises:
            InputError: if it is no model, or does not read what the side needs.
        """
        if _is_export(model):
            return ExportedEncoder(model, side, batch_size)
        return cls(from_preset(model), side, batch_size, **resizing_of(model))

    def __call__(self, work: Work, advance: Callable[[int], Any] = lambda count: None) -> Encoded:
        """Encodes the items of one shard.

        Args:
            work: see `zoo.collection.work.plan`.
            advance: is told how many more items are done.

        Returns:
            An `Encoded`: items that cannot be read are in its `rejected`.
        """
        if work.kind == ROWS:
            return self._of_rows(work, advance)
        names, parts, rejected, held, lost = [], [], [], [], []
        stamps, done = contents.stamps(work), 0
        size = self.batch_size if self.side == "images" else _MANY["vectors"]
        for batch in _batches(read(work, self.side), size):
            reasons = [reason for _, _, reason in batch]
            if self.side == "images":
                reasons = _checked(batch)
            said = [
                f"{stamps[min(done + i, len(stamps) - 1)]}:{contents.hashed(data)}"
                for i, (_, data, _) in enumerate(batch)
            ]
            good = [i for i, reason in enumerate(reasons) if reason is None]
            held += [said[i] for i in good]
            lost += [said[i] for i, reason in enumerate(reasons) if reason is not None]
            done += len(batch)
            rejected += [(batch[i][0], why) for i, why in enumerate(reasons) if why is not None]
            if good:
                names += [batch[i][0] for i in good]
                parts.append(self._encode([batch[i][1] for i in good]))
            advance(len(batch))
        return self._encoded(names, parts, rejected, held + lost)

    def _of_rows(self, work, advance):
        if not self.of_vectors:
            raise InputError(f"{work.path}: the model reads no vectors of {self.side}")
        stamps = contents.stamps(work)
        array = read_vectors(work.path, self.side)
        if array.shape[1] != self.dim:
            raise InputError(
                f"{work.path}: expected vectors of {self.dim} channels, which the model takes for "
                f"{self.side}; found {array.shape[1]}"
            )
        start, stop = work.items
        if not 0 <= start < stop <= len(array):
            raise InputError(f"{work.path}: expected rows below {len(array):,}; received {start}")
        parts = [self._encode(np.asarray(array[start:stop], np.float32))]
        advance(stop - start)
        rows = zip(stamps, np.asarray(array[start:stop]), strict=True)
        said = [f"{stamp}:{contents.hashed(row)}" for stamp, row in rows]
        return self._encoded(list(work.names), parts, [], said)

    def _encoded(self, names, parts, rejected, said):
        arrays = joined(parts)
        uncertainty = arrays.pop("uncertainty", None)
        if uncertainty is None and self._measures and arrays:
            uncertainty = _uncertainty(arrays, self._measure)
        return Encoded(names, arrays, uncertainty, rejected, said)


class ExportedEncoder(Encoder):
    """Encodes by the signatures of an exported model, here or in an object store.

    Args:
        folder: of one version.
        side, batch_size: as of `Encoder`.

    Raises:
        InputError: if it is no export, or takes no requests of this side.
    """

    _measures = False

    def __init__(self, folder: Any, side: str, batch_size: int = 64):
        self.side, self.of_vectors = side, False
        facts = json.loads(places.read_bytes(places.join(folder, EXPORT_FILE)))
        if "tensorflow_text" in facts["loads_with"]:
            import tensorflow_text  # noqa: F401 - the tokenizer's operations
        self._folder = folder
        self._loaded = tf.saved_model.load(str(folder))  # referenced, or its variables are deleted
        name = f"encode_{side}"
        if name not in self._loaded.signatures:
            found = ", ".join(sorted(self._loaded.signatures))
            raise InputError(f"{folder}: expected a signature {name!r}, found {found}")
        signature = self._loaded.signatures[name]
        (spec,) = signature.structured_input_signature[1].values()
        if spec.dtype != tf.string:
            raise InputError(f"{folder}: its {side} are {spec.dtype.name} arrays, not {side}")
        fixed = spec.shape[0]
        self.batch_size = fixed or batch_size

        def encode(batch):
            # An export of one batch size gets batches of that size.
            filled = batch + [batch[0]] * ((fixed or len(batch)) - len(batch))
            outputs = signature(**{side: tf.constant(filled)})
            return {key: value.numpy()[: len(batch)] for key, value in outputs.items()}

        self._encode = encode if not fixed else lambda batch: _in_parts(encode, batch, fixed)

    @functools.cached_property
    def model_sha256(self) -> str:
        """The hash of the export's files."""
        digest = hashlib.sha256(self.side.encode())
        for path in places.matching(self._folder, "**"):
            digest.update(hashlib.sha256(places.read_bytes(path)).digest())
        return digest.hexdigest()


def weights_sha256(model: DualEncoder, facts: str = "") -> str:
    """The hash of all weights of a model, and of a text beside them."""
    digest = hashlib.sha256(facts.encode())
    for weights in model.get_weights():
        digest.update(repr((weights.shape, weights.dtype)).encode())
        digest.update(np.ascontiguousarray(weights).tobytes())
    return digest.hexdigest()


def reads_vectors(model: DualEncoder, side: str) -> bool:
    """Whether a model takes stored vectors of `"images"` or of `"captions"`."""
    if side == "captions":
        return model.reads_caption_vectors
    shape = getattr(model.image_encoder, "input_shape", None)
    return isinstance(shape, tuple) and len(shape) == 2


def _is_export(model):
    if places.is_remote(model):
        return bool(places.matching(model, EXPORT_FILE)) and not str(model).startswith(
            ("hf://", "kaggle://")
        )
    return (Path(str(model)) / EXPORT_FILE).is_file()


def _of_pictures(model, mode, crop_fraction):
    shape = getattr(model.image_encoder, "input_shape", None)
    if shape is not None and (not isinstance(shape, tuple) or len(shape) != 4):
        raise InputError(f"the model reads features of shape {shape}, not pictures")
    size = (shape and shape[1]) or 224

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False)
    def encode(contents):
        pixels = tf.map_fn(
            lambda one: images.prepare(one, size, mode, crop_fraction),
            contents,
            fn_output_signature=tf.TensorSpec((size, size, 3), tf.uint8),
            parallel_iterations=os.cpu_count() or 1,
        )
        return model.image_encoder(tf.cast(pixels, tf.float32), training=False)

    return lambda contents: parts_of(encode(tf.constant(contents)))


def _uncertainty(arrays, measure):
    if not embeddings.has_uncertainty(arrays):
        return None
    return np.asarray(embeddings.uncertainty(arrays, measure))


def _batches(items, size):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _in_parts(encode, batch, size):
    return joined([encode(batch[i : i + size]) for i in range(0, len(batch), size)])


def _checked(batch):
    """Why each item cannot be used, None where it can."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        found = pool.map(lambda i: i[2] or why_unreadable(i[1]), batch)
        return list(found)
