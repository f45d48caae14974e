"""Files and folders that are whole or not there, and writers that take turns."""

import contextlib
import errno
import fcntl
import os
import platform
import re
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from zoo.errors import InputError

_LEFTOVER = re.compile(r"\.tmp-[0-9a-f]{16}-.+")
_TAIL = 40  # characters of a name that its temporary one keeps: the two share a limit
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
LOCK_FILE = ".lock"
_POLL = 0.01  # seconds between two attempts
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


def temporary_file(folder: str | os.PathLike, name: str) -> tuple[Path, int]:
    """An empty file of a random name, its path and descriptor. A lock says that its writer lives,
    see `remove_leftovers`, until the caller closes the descriptor."""
    while True:
        path = Path(folder) / f".tmp-{secrets.token_hex(8)}-{name[-_TAIL:]}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        except OSError as error:
            if error.errno in _NO_LOCKS:  # nobody can tell that it is left over, so it stays
                return path, descriptor
            os.close(descriptor)
            raise
        os.close(descriptor)  # cleaned away between its making and its lock


@contextlib.contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` when the block ends without an error.

    It lies in the same folder, which is made when missing, and keeps the suffix, by which Keras
    chooses its format. Content, then name, are flushed to the disk.

    ```python
    with atomic(folder / "model.keras") as temporary:
        model.save(temporary)
    ```

    Raises:
        InputError: if the file cannot be written. What was at `path` before is untouched.
    """
    path = Path(os.path.abspath(path))  # the writer, or what it calls, may join it with a folder
    temporary = descriptor = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, descriptor = temporary_file(path.parent, path.name)
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    except OSError as error:
        # h5py reports a full disk by an OSError without strerror.
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            os.close(descriptor)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike, replace: bool = False) -> Iterator[Path]:
    """A temporary folder beside `path` that becomes it when the block ends without an error. Raises
    InputError if it cannot be made, or, without `replace`, another process has filled `path`."""
    path = Path(os.path.abspath(path))  # Keras joins a relative one with a folder of its own
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        yield unfinished
        unfinished.chmod(0o755)  # mkdtemp's 0700 would keep others out wherever it is copied
        former = unfinished.with_name(f"{unfinished.name}-former")
        try:
            if replace and path.exists():
                os.rename(path, former)
            os.rename(unfinished, path)
        except OSError:
            if former.exists():
                os.rename(former, path)
            raise InputError(f"{path}: another process has just written there") from None
        shutil.rmtree(former, ignore_errors=True)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a text file atomically, as UTF-8."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def is_temporary(name: str) -> bool:
    """Whether a name is one of `temporary_file`: 16 random digits stand in it."""
    return _LEFTOVER.fullmatch(name) is not None


def remove_leftovers(folder: str | os.PathLike, deep: bool = True) -> None:
    """Deletes the temporary files of processes that were killed while writing.

    Files whose writer lives stay, in whatever thread, container or host: it holds a lock on each.
    On a file system without locks all stay. `deep`: in the folders below `folder` too.
    """
    folder = Path(folder)
    for path in folder.rglob(".tmp-*") if deep else folder.glob(".tmp-*"):
        if not is_temporary(path.name):
            continue
        with contextlib.suppress(OSError):  # locked, gone, or of another user
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def locked(folder):
    """Holds a run folder, made when missing, for this process while the block runs.

    The lock is on the open file, and the system releases it when the process ends. Of several
    workers only the chief may take it. An InputError if another process holds it, or the folder
    cannot be written.
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
    """Holds a folder that threads and processes write in turn; it is made when missing. Raises
    `filelock.Timeout` after `wait` seconds; negative waits for ever."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / LOCK_FILE, timeout=wait, poll_interval=_POLL):
        yield


def _flush(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
