"""Files of arrays, refused in a sentence where they are damaged."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from halo_search.errors import InputError


def read_arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file. Raises InputError if it is missing, damaged or has objects."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    with refusing(path):
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        if any(isinstance(values, bytes) for values in arrays.values()):
            raise ValueError("it holds more than arrays")
    return arrays


def read_array(path: str | os.PathLike) -> np.ndarray:
    """The array of an `.npy` file, mapped: a shape that the file does not hold takes no memory. An
    InputError if it is none."""
    with refusing(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: expected one array, found an archive of several")
    return array


def check_hdf5(file: Any) -> None:
    """Refuses an HDF5 file whose arrays lie in other files, or that has links, by a ValueError; an
    OSError if it is no HDF5 file."""
    import h5py  # which readers of other files need not have

    def check(group):
        for name in group:
            where = f"{group.name.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"{where} is a link, which is not followed")
            item = group[name]
            if isinstance(item, h5py.Group):
                check(item)
            elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
                raise ValueError(f"{where} lies in another file, which is not read")

    with h5py.File(file, "r") as stored:
        check(stored)


@contextmanager
def refusing(path: str | os.PathLike) -> Iterator[None]:
    """Turns whatever a damaged archive raises into an `InputError` that names the file."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot be read: {reason}") from error


def open_memmap(path, dtype, shape):
    """Makes an `.npy` file, an `np.memmap` of zeros to write to, whose room is taken at once: else
    a full disk kills the process (SIGBUS) later. An OSError if there is none; nothing is left."""
    path = Path(path)
    try:
        array = np.lib.format.open_memmap(path, "w+", dtype, tuple(shape))
        if hasattr(os, "posix_fallocate"):
            with open(path, "r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return array
    except OSError as error:
        path.unlink(missing_ok=True)
        needed = np.dtype(dtype).itemsize * math.prod(shape)
        why = f"{os.strerror(error.errno)} ({needed / 2**20:,.0f} MiB are needed)"
        raise OSError(error.errno, why, str(path)) from error
