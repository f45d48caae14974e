"""A preset's weights in half or a quarter of the room, as float16 and int8."""

import os
import pathlib
from collections.abc import Callable

import h5py
import numpy as np

from zoo.errors import InputError

SCALES = "halo_scales"  # the group that says what the steps of int8 are
LEAST = 1 << 16  # elements from which a matrix is worth steps of its own
_LEVELS = 127


def shrink(path: str | os.PathLike, int8: bool = False) -> None:
    """Rewrites an HDF5 file of weights with float16 matrices, with `int8` the large ones as int8.
    Raises InputError if a weight is too large for float16."""
    path = pathlib.Path(path)

    def narrowed(name, values, scales):
        if values.ndim < 2 or values.dtype != np.float32:
            return values
        if int8 and values.size >= LEAST:
            levels, steps = to_int8(values)
            scales.create_dataset(name, data=steps)
            return levels
        if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
            raise InputError(f"{name}: a weight is too large for float16")
        return values.astype(np.float16)

    _rewritten(path, path, narrowed)


def is_int8(path: str | os.PathLike) -> bool:
    """Whether `shrink` has left int8 in a file, which Keras cannot read as it is."""
    try:
        with h5py.File(path, "r") as file:
            return SCALES in file
    except OSError:
        return False  # Keras says what is wrong with it


def widen(path: str | os.PathLike, out: str | os.PathLike) -> None:
    """Writes what `shrink` made as a file that Keras reads. Raises KeyError or OSError if it is
    damaged."""
    with h5py.File(path, "r") as file:
        steps = file[SCALES]

        def widened(name, values, _):
            if values.dtype != np.int8:
                return values
            return values.astype(np.float32) * steps[name][()].astype(np.float32)

        _rewritten(path, out, widened, keep_scales=False, compress=False)


def to_int8(values):
    """`(levels, steps)`, int8 and float16, whose product is about `values`; what is such a product
    is exact. A matrix has steps for all but its first axis, a table of vectors one per row, a
    convolution one per output channel."""
    by_row = values.ndim == 2 and values.shape[0] > 8 * values.shape[1]  # a table of vectors
    axes = (0, 1, 2) if values.ndim == 4 else -1 if by_row else 0
    largest = np.abs(values).max(axis=axes, keepdims=True)
    steps = np.maximum((largest / _LEVELS).astype(np.float16), np.finfo(np.float16).tiny)
    # The largest weight may lack a part of a step, by which what was int8 stays as it is.
    levels = np.rint(values / steps.astype(np.float32))
    return np.clip(levels, -_LEVELS, _LEVELS).astype(np.int8), steps


def _rewritten(
    path: pathlib.Path,
    out: pathlib.Path,
    change: Callable,
    keep_scales: bool = True,
    compress: bool = True,
):
    unfinished = pathlib.Path(out).with_suffix(".unfinished")
    # The layout of HDF5 1.10 (2016) spends 3 kB less on each array than the oldest, which is the
    # default: 2.4 MB of `photos_pfe`.
    file = h5py.File(unfinished, "w", libver=("v110", "v110"))
    with h5py.File(path, "r") as old, file as new:
        scales = new.create_group(SCALES) if keep_scales else None

        def copy(name, item):
            if name.split("/")[0] == SCALES:
                return
            if not isinstance(item, h5py.Dataset):
                new.require_group(name).attrs.update(item.attrs)
                return
            values = change(name, item[()], scales)
            packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
            options = packed | {"chunks": values.shape} if compress and values.size > 100 else {}
            new.create_dataset(name, data=values, **options).attrs.update(item.attrs)

        new.attrs.update(old.attrs)
        old.visititems(copy)
        if keep_scales and not len(scales):
            del new[SCALES]
    os.replace(unfinished, out)
