"""A frozen backbone's features, computed once and stored."""

import hashlib
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from zoo.cli import verbosity
from zoo.data.records import Records
from zoo.data.records.fingerprints import pictures_sha256
from zoo.files.atomic import atomic
from zoo.files.disk import open_memmap
from zoo.models.forward import Forward


def cached(
    folder: str | os.PathLike,
    backbone: keras.Model,
    records: Records,
    source: Any,
    batch_size: int = 32,
    verbose: bool = True,
) -> np.ndarray:
    """The features of all images of a split as a float16 memory map on disk.

    The name of the file follows from the contents of the images, how they are resized and the
    weights, so features of other pixels or other weights are never taken for these. It appears
    whole or not at all.

    Args:
        folder: where the file lies.
        backbone: a `keras.Model` from images to features, run in inference mode.
        records: the split, whose images these are.
        source: the split's pictures, see `zoo.data.sources`.
        batch_size: images at once.
        verbose: show a progress bar.

    Returns:
        A read-only `np.memmap` `(source.count, …)`, for `zoo.data.sources.Features`.

    Raises:
        InputError: if the file cannot be written, such as on a full disk, or an image not read.
    """
    path = Path(folder) / f"features-{_digest(backbone, records, source)}.npy"
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


def _digest(backbone, records, source):
    facts = backbone.output_shape, getattr(source, "resizing", None)
    digest = hashlib.sha256(repr(facts).encode())
    for weights in backbone.get_weights():
        digest.update(np.ascontiguousarray(weights).tobytes())
    digest.update("\0".join(pictures_sha256(records)).encode())
    return digest.hexdigest()[:16]
