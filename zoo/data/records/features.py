"""What a frozen network makes of pictures and captions, computed once and stored."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from zoo.cli import verbosity
from zoo.data.records import Records
from zoo.data.text.captions import token_ids
from zoo.errors import InputError
from zoo.files.array_files import open_memmap
from zoo.files.atomic import atomic
from zoo.files.environment import cache_folder
from zoo.files.json_files import read_json, write_json
from zoo.models.forward import Forward

_BATCH = 64
_STEP = 4  # lengths are rounded up to these, so that a handful of graphs serves all of them
_NOTHING = 0  # the id of padding, of every tokenizer


def cached(
    folder: str | os.PathLike,
    backbone: keras.Model,
    records: Records,
    source: Any,
    batch_size: int = 32,
    verbose: bool = True,
) -> np.ndarray:
    """The features of all images of a split as a float16 memory map on disk, read-only, for
    `zoo.data.sources.Features`.

    The name of the file follows from the contents of the images, how they are resized and the
    weights, so features of other pixels or other weights are never taken for these. An InputError
    if it cannot be written, or an image not read.
    """
    facts = backbone.output_shape, getattr(source, "resizing", None)
    contents = "\0".join(_pictures_sha256(records)).encode()
    path = Path(folder) / f"features-{_digest(facts, backbone, contents)}.npy"
    if path.exists():
        return np.load(path, mmap_mode="r")
    shape = (source.count, *backbone.output_shape[1:])
    progress = keras.utils.Progbar(source.count, unit_name="image", verbose=verbosity(verbose))
    forward = Forward(backbone)
    with atomic(path) as unfinished:
        stored = open_memmap(unfinished, np.float16, shape)
        done = 0
        for batch in source.in_order(batch_size):
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
    """The vectors of some captions, float32 `(M, width)`; what is there twice is encoded once.

    Captions of one length are encoded together, so that nothing is spent on padding: of Flickr8k's
    captions a fifth of what rows of 64 ids cost. The name of the file follows from the ids and the
    weights. `backbone` maps ids to a dict with `"pooled"` and masks padding, or full rows to an
    array.
    """
    distinct, place = np.unique(np.asarray(captions, str), return_inverse=True)
    ids = np.ascontiguousarray(token_ids(tokenizer, list(distinct)), np.int32)
    path = Path(folder) / f"captions-{_digest(ids.shape, backbone, ids.tobytes())}.npy"
    if not path.exists():
        with atomic(path) as unfinished, open(unfinished, "wb") as file:
            np.save(file, pooled_vectors(backbone, ids))
    return np.load(path)[place]


def pooled_vectors(backbone: keras.Model, ids: np.ndarray) -> np.ndarray:
    """The vectors of rows of ids padded with zeros, float32 `(M, width)`, those of one length
    together; the backbone is that of `caption_vectors`."""
    if not isinstance(backbone.output, dict):  # it may read padding too
        forward = Forward(backbone)
        starts = range(0, len(ids), _BATCH)
        return np.concatenate([forward(ids[start : start + _BATCH]) for start in starts])
    vectors = np.empty((len(ids), backbone.output["pooled"].shape[-1]), np.float32)
    for rows, found in _by_length(backbone, ids):
        vectors[rows] = found
    return vectors


def _digest(facts, backbone, contents):
    """What a file of features follows from: facts, a backbone's weights, and what it read."""
    digest = hashlib.sha256(repr(facts).encode())
    for weights in backbone.get_weights():
        digest.update(np.ascontiguousarray(weights).tobytes())
    digest.update(contents)
    return digest.hexdigest()[:16]


def _by_length(backbone, ids):
    """Yields `(rows, their vectors)`, with no more padding than a batch needs."""
    ids = np.asarray(ids, np.int32)
    lengths = np.maximum(1, (ids != _NOTHING).sum(axis=1))
    lengths = np.minimum(-(-lengths // _STEP) * _STEP, ids.shape[1])

    # `call`, since `__call__` insists on as many ids as the model was made for.
    @tf.function(reduce_retracing=False)
    def output(batch):
        return backbone.call(batch, training=False)["pooled"]

    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths == length)
        traced = output.get_concrete_function(tf.TensorSpec((None, length), tf.int32))
        for start in range(0, len(alike), _BATCH):
            rows = alike[start : start + _BATCH]
            yield rows, traced(tf.constant(ids[rows, :length])).numpy()


def _hashes(paths: Iterable[str | os.PathLike]) -> dict[str, str]:
    """SHA-256 of files' contents, `{absolute path: hash}`, "" for what names no file."""
    paths = sorted({os.path.abspath(path) for path in paths})
    key = hashlib.sha256("\0".join(paths).encode()).hexdigest()[:16]
    ledger = cache_folder("contents", f"{key}.json")
    known, now = _read(ledger), {}
    for path in paths:
        stamp = _stamp(path)
        same = stamp and known.get(path, [None])[0] == stamp
        now[path] = [stamp, known[path][1] if same else ""]
    unread = [path for path, (stamp, found) in now.items() if stamp and not found]
    with ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1))) as pool:
        for path, found in zip(unread, pool.map(_hash, unread), strict=True):
            now[path][1] = found
    if unread:
        write_json(ledger, now)
    return {path: found for path, (_, found) in now.items()}


def _pictures_sha256(records: Records) -> list[str]:
    """Hash of each picture's contents, or of its path where it is no file; a row `FILE#7` has its
    file's."""
    # A file of features is often of several gigabytes, and is read once.
    places = [_place(str(path)) for path in records.image_paths]
    found = _hashes({file for file, _ in places})
    return [f"{found[os.path.abspath(file)] or file}{row}" for file, row in places]


def _read(path):
    try:
        known = read_json(path)
    except InputError:  # it is a cache, and is made again
        return {}
    return known if isinstance(known, dict) else {}


def _stamp(path):
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{found.st_size}-{found.st_mtime_ns}"


def _hash(path):
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _place(path):
    """`(file, row)` of a picture: `FILE#7` is a row of a file of features."""
    file, mark, row = path.rpartition("#")
    is_row = mark and row.isdigit() and not os.path.exists(path)
    return (file, f"#{row}") if is_row else (path, "")
