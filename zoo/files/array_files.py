"""NumPy's archives, read within bounds: damaged and inflated ones are refused in a sentence."""

import errno
import math
import os
import tokenize
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from zoo.errors import InputError

LEAST, TIMES = 2**29, 32  # bytes of all arrays together that any file may hold, and times its size
_BLOCK = 1 << 20


class ArrayFile(Mapping):
    """An `.npz` file, of which each array is read when it is asked for, and checked before.

    ```python
    np.savez("arrays.npz", a=np.arange(3), b=np.eye(2))
    with zoo.files.array_files.ArrayFile("arrays.npz") as stored:
        stored.shape("b"), stored["a"]  # (2, 2), array([0, 1, 2])
    ```

    Args:
        path: the file.
        limit: bytes of all arrays together at most; None goes by the size of the file.

    Raises:
        InputError: if the file is missing, is no such archive or is larger than `limit`; and when
            an array is damaged or holds objects.
        KeyError: if there is no such array.
    """

    def __init__(self, path: str | os.PathLike, limit: int | None = None):
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{path}: there is no such file")
        with refusing(path):
            size = self.path.stat().st_size
            self._zip = zipfile.ZipFile(path)
            check_sizes(self._zip, max(LEAST, TIMES * size) if limit is None else limit)
        self._members = {info.filename.removesuffix(".npy"): info for info in self._zip.infolist()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._zip.close()

    def __iter__(self):
        return iter(self._members)

    def __len__(self):
        return len(self._members)

    def __getitem__(self, name):
        info = self._members[name]
        with refusing(self.path), self._zip.open(info) as file:
            shape, fortran, dtype = npy_header(file)
            if dtype.hasobject:
                raise ValueError(f"{info.filename} holds Python objects, which are never read")
            size = math.prod(shape) * dtype.itemsize
            if min(shape, default=0) < 0 or size != info.file_size - file.tell():
                raise ValueError(f"{info.filename} says a shape of {shape} and holds another")
            values = np.frombuffer(bytearray(file.read()), dtype)
        return values.reshape(shape, order="F" if fortran else "C")

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, by its header."""
        with refusing(self.path), self._zip.open(self._members[name]) as file:
            return npy_header(file)[0]


def read_arrays(path: str | os.PathLike, limit: int | None = None) -> dict[str, np.ndarray]:
    """All arrays of an `ArrayFile`. Raises InputError as `ArrayFile`."""
    with ArrayFile(path, limit) as stored:
        return dict(stored)


def read_array(path: str | os.PathLike) -> np.ndarray:
    """The array of an `.npy` file, mapped: a shape that the file does not hold takes no memory.
    Raises InputError if it is missing, damaged, holds objects or is an archive of several."""
    with refusing(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: expected one array, found an archive of several")
    return array


def check_sizes(archive: zipfile.ZipFile, limit: int) -> None:
    """Refuses an archive whose members are larger than `limit` together, by their headers.

    Raises:
        ValueError: with both sizes; Python reads no member further than its header says.
    """
    _check_size(sum(info.file_size for info in archive.infolist()), limit)


def check_hdf5(file: Any, size: int) -> None:
    """Refuses an HDF5 file, a path or a binary file that can seek, of `size` bytes, whose arrays
    are larger than that allows, or lie in other files.

    Raises:
        ValueError: as above; nothing of an array has been read.
        OSError: if it is no HDF5 file.
    """
    import h5py  # which readers of other files need not have

    total = 0

    def add(name, item):
        nonlocal total
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise ValueError(f"{name} lies in another file, which is not read")
            total += math.prod(item.shape or ()) * item.dtype.itemsize

    with h5py.File(file, "r") as stored:
        stored.visititems(add)
    _check_size(total, max(LEAST, TIMES * size))


def _check_size(size, limit):
    if size > limit:
        raise ValueError(f"expected {limit:,} bytes at most, it inflates to {size:,}")


@contextmanager
def refusing(path: str | os.PathLike) -> Iterator[None]:
    """Turns whatever a damaged archive raises into an `InputError` that names the file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot be read: {reason}") from error


def open_memmap(path, dtype, shape):
    """Makes an `.npy` file whose whole room on the disk is taken at once, mapped for writing.

    A map of a file with holes takes its room page by page, and a full disk then kills the process
    (SIGBUS). Here the disk is asked first.

    Args:
        path: the file, replaced if it is there.
        dtype: of the array.
        shape: of the array.

    Returns:
        An `np.memmap` of zeros, open for reading and writing.

    Raises:
        OSError: if there is no room for it, or the file cannot be written. Nothing is left of it.
    """
    path = Path(path)
    try:
        array = np.lib.format.open_memmap(path, "w+", dtype, tuple(shape))
        if array.size:
            _take_room(path, array.offset, path.stat().st_size)
        return array
    except OSError as error:
        path.unlink(missing_ok=True)
        needed = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            why = f"{os.strerror(error.errno)} ({needed / 2**20:,.0f} MiB are needed)"
            raise OSError(error.errno, why, str(path)) from error
        raise


def npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """`(shape, is_fortran, dtype)` of an open `.npy` file. Raises ValueError if it is damaged."""
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        header = np.lib.format.read_array_header_2_0
    try:
        return header(file)
    except (SyntaxError, tokenize.TokenError) as error:  # NumPy reads the header as Python
        raise ValueError(str(error)) from error


def _take_room(path, start, size):
    with open(path, "r+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
            return
        file.seek(start)
        while start < size:
            start += file.write(bytes(min(_BLOCK, size - start)))
