"""What a frozen network makes of pictures and captions, computed once and stored."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from halo_search.files.array_files import open_memmap
from halo_search.files.atomic import atomic
from zoo.cli import verbosity
from zoo.data.records import Records
from zoo.data.text.captions import token_ids
from zoo.models.tower import Forward

_BATCH, _IMAGES = 64, 32  # captions and images at once
_NOTHING = 0  # the id of padding, of every tokenizer


def cached(
    folder: str | os.PathLike,
    backbone: keras.Model,
    records: Records,
    source: Any,
    verbose: bool = True,
) -> np.ndarray:
    """The features of all images of a split as a float16 memory map on disk, read-only. The file is
    named by the images' names, sizes and times, how they are resized, and the weights."""
    facts = backbone.output_shape, getattr(source, "resizing", None)
    path = Path(folder) / f"features-{_digest(facts, backbone, _pictures(records).encode())}.npy"
    if path.exists():
        return np.load(path, mmap_mode="r")
    shape = (source.count, *backbone.output_shape[1:])
    progress = keras.utils.Progbar(source.count, unit_name="image", verbose=verbosity(verbose))
    forward = Forward(backbone)
    with atomic(path) as unfinished:
        stored = open_memmap(unfinished, np.float16, shape)
        done = 0
        for batch in source.in_order(_IMAGES):
            # Half precision ends at 65,504.
            features = np.clip(forward(batch), -6e4, 6e4)
            stored[done : done + len(features)] = features
            done += len(features)
            progress.update(done)
        stored.flush()
    return np.load(path, mmap_mode="r")


def caption_vectors(
    folder: str | os.PathLike, backbone: keras.Model, tokenizer: Any, captions: Sequence[str]
) -> np.ndarray:
    """The vectors of some captions, float32 `(M, width)`; what is there twice is encoded once. The
    backbone maps ids to a dict with `"pooled"` and masks padding, or full rows to an array."""
    distinct, place = np.unique(np.asarray(captions, str), return_inverse=True)
    ids = np.ascontiguousarray(token_ids(tokenizer, list(distinct)), np.int32)
    path = Path(folder) / f"captions-{_digest(ids.shape, backbone, ids.tobytes())}.npy"
    if not path.exists():
        with atomic(path) as unfinished, open(unfinished, "wb") as file:
            np.save(file, pooled_vectors(backbone, ids))
    return np.load(path)[place]


def pooled_vectors(backbone: keras.Model, ids: np.ndarray) -> np.ndarray:
    """The vectors of rows of ids padded with zeros, float32 `(M, width)`, those of one length
    together, which costs a fifth of padding to 64 ids."""
    if not isinstance(backbone.output, dict):  # it may read padding too
        forward = Forward(backbone)
        starts = range(0, len(ids), _BATCH)
        return np.concatenate([forward(ids[start : start + _BATCH]) for start in starts])
    vectors = np.empty((len(ids), backbone.output["pooled"].shape[-1]), np.float32)
    for rows, rows_vectors in _by_length(backbone, ids):
        vectors[rows] = rows_vectors
    return vectors


def _digest(facts, backbone, contents):
    """What a file of features follows from: facts, a backbone's weights, and what it read."""
    digest = hashlib.sha256(repr(facts).encode())
    for weights in backbone.get_weights():
        digest.update(np.ascontiguousarray(weights).tobytes())
    digest.update(contents)
    return digest.hexdigest()[:16]


def _by_length(backbone, ids):
    """Yields `(rows, their vectors)`, those of about one length together: padding costs as much as
    words."""
    ids = np.asarray(ids, np.int32)
    lengths = np.maximum(1, (ids != _NOTHING).sum(axis=1))
    order = np.argsort(lengths, kind="stable")

    # One graph for all lengths, since tracing one takes as long as encoding a thousand captions.
    # `call`, since `__call__` insists on as many ids as the model was made for.
    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def output(batch):
        return backbone.call(batch, training=False)["pooled"]

    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        yield rows, output(tf.constant(ids[rows, : lengths[rows].max()])).numpy()


def _pictures(records: Records) -> str:
    """Name, size and time of each picture's file; a row `FILE#7` has its file's."""
    return "\0".join(f"{path} {_stamp(str(path))}" for path in records.image_paths)


def _stamp(path):
    """The size and time of a picture's file, by which a stored feature is known to be of it; empty
    if there is no file."""
    file, mark, row = path.rpartition("#")
    if mark and row.isdigit() and not os.path.exists(path):
        path = file
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"
