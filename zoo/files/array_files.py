"""NumPy's archives, read within bounds: damaged and inflated ones are refused in a sentence."""

import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from zoo.errors import InputError

LIMIT = 4 * 2**30  # bytes of all arrays together


def read_arrays(path: str | os.PathLike, limit: int = LIMIT) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file, each checked against its declared size before it is read.

    ```python
    np.savez("arrays.npz", a=np.arange(3))
    zoo.files.array_files.read_arrays("arrays.npz")["a"]  # array([0, 1, 2])
    ```

    Args:
        path: the file.
        limit: bytes of all arrays together at most, before any is read.

    Raises:
        InputError: if the file is missing, is no such archive, is damaged, holds objects, or is
            larger than `limit`.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    with refusing(path), zipfile.ZipFile(path) as archive:
        check_sizes(archive, limit)
        return {
            info.filename.removesuffix(".npy"): _array(archive, info) for info in archive.infolist()
        }


def check_sizes(archive: zipfile.ZipFile, limit: int) -> None:
    """Refuses an archive whose members are larger than `limit` together, by their headers.

    Raises:
        ValueError: with both sizes; Python reads no member further than its header says.
    """
    size = sum(info.file_size for info in archive.infolist())
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


def _array(archive, info):
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            header = np.lib.format.read_array_header_2_0
        shape, fortran, dtype = header(file)
        if dtype.hasobject:
            raise ValueError(f"{info.filename} holds Python objects, which are never read")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != info.file_size - file.tell():
            raise ValueError(f"{info.filename} says a shape of {shape} and holds another")
        values = np.frombuffer(bytearray(file.read()), dtype)
    return values.reshape(shape, order="F" if fortran else "C")
