"""Files of known size that are written through a memory map."""

import errno
import os
from pathlib import Path

import numpy as np

_BLOCK = 1 << 20


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


def _take_room(path, start, size):
    with open(path, "r+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
            return
        file.seek(start)
        while start < size:
            start += file.write(bytes(min(_BLOCK, size - start)))
