"""A lock that keeps two processes from training in one run folder."""

import contextlib
import errno
import fcntl
import os
import platform
import warnings
from pathlib import Path

from zoo.errors import InputError

LOCK_FILE = ".lock"
_HELD = (errno.EWOULDBLOCK, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


@contextlib.contextmanager
def locked(folder):
    """Holds a run folder for this process while the block runs.

    The system releases the lock when the process ends, however it ends. The file stays and says
    nothing by being there: the lock is on the open file. Of several workers only the chief may
    take it.

    ```python
    with locked(settings.out):
        run = RunFolder.open(settings.out, settings)
    ```

    Args:
        folder: made when missing.

    Raises:
        InputError: if another process holds it, or the folder cannot be written.
    """
    folder = Path(folder)
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    try:
        _take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)  # which releases the lock


def _take(descriptor, folder):
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", errors="replace").strip()
            who = f" ({holder})" if holder else ""
            raise InputError(f"another process{who} is training in {folder}") from None
        if error.errno not in _NO_LOCKS:
            raise InputError(f"cannot lock {folder}: {error.strerror}") from error
        warnings.warn(
            f"{folder} lies on a file system without locks: make sure that only one process "
            "trains in it",
            stacklevel=4,
        )
        return
    with contextlib.suppress(OSError):  # who holds it is told for the message alone
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} on {platform.node()}\n".encode(), 0)
