"""Locks of folders: one process trains in a run folder, and writers of an index take turns."""

import contextlib
import errno
import fcntl
import os
import platform
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from zoo.errors import InputError

LOCK_FILE = ".lock"
_POLL = 0.01  # seconds between two attempts
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


@contextlib.contextmanager
def in_turn(folder: str | os.PathLike, wait: float = -1) -> Iterator[None]:
    """Holds a folder that threads and processes write one after the other.

    One waiting writer holds the entrance and comes next. A writer that begins again at once finds
    the entrance taken, so it cannot keep the others out.

    Args:
        folder: made when missing.
        wait: seconds to wait for those before; negative waits for ever.

    Raises:
        filelock.Timeout: if it is still held then.
        OSError: if the folder cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + (wait if wait >= 0 else float("inf"))
    with _entrance(folder, until):
        lock = FileLock(folder / LOCK_FILE, poll_interval=_POLL)
        lock.acquire(timeout=wait if wait <= 0 else max(0.0, until - time.monotonic()))
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _entrance(folder, until):
    """Holds the folder's own descriptor: the next writer, of which there is one."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while not _try_lock(descriptor):
            if time.monotonic() >= until:
                raise Timeout(str(folder))
            time.sleep(_POLL)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a fork may have the descriptor, too
        os.close(descriptor)


def _try_lock(descriptor):
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _HELD  # a file system that locks no folders has no entrance
    return True
