"""Files and folders that are whole or not there, and writers that take turns."""

import contextlib
import ctypes
import errno
import glob
import os
import re
import secrets
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # of Windows
    fcntl = None

from halo_search.errors import InputError

_LEFTOVER = re.compile(r"\.tmp-[0-9a-f]{16}-.+")
_TAIL = 40  # characters of a name that its temporary folder keeps: the two share a limit
_OLD = 3600  # seconds after the last write, from which what nobody can lock is a killed writer's
_HERE, _EXCHANGE = -100, 2  # of Linux' renameat2: names are of this folder; both change places
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
LOCK_FILE = ".lock"
_POLL = 0.01  # seconds between two attempts


@contextlib.contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` when the block ends without an error; else
    what was there is untouched. An InputError if it cannot be written.

    It has the same name, by whose suffix Keras chooses its format, and lies in a temporary folder
    beside `path`, whose own folder is made when missing. Content, then name, are flushed to the
    disk.

    ```python
    with atomic(folder / "model.keras") as temporary:
        model.save(temporary)
    ```
    """
    path = Path(os.path.abspath(path))  # the writer, or what it calls, may join it with a folder
    try:
        with _temporary_folder(path) as folder:
            temporary = folder / path.name
            with _errors_of_hdf5():
                yield temporary
            flush(temporary)
            os.replace(temporary, path)
            flush(path.parent)
    except OSError as error:
        # h5py reports a full disk by an OSError without strerror.
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike, replace: bool = False) -> Iterator[Path]:
    """A temporary folder that becomes `path` when the block ends without an error. Raises
    InputError if it cannot be made, the disk is full, or, without `replace`, another process has
    filled `path`."""
    path = Path(os.path.abspath(path))  # Keras joins a relative one with a folder of its own
    former = path.with_name(f".{path.name}-former")
    with contextlib.ExitStack() as held:
        try:
            folder = held.enter_context(_temporary_folder(path))
            if former.exists() and not path.exists():  # a writer was killed in between
                os.rename(former, path)
            unfinished = folder / path.name
            unfinished.mkdir()
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
        try:
            with _errors_of_hdf5():
                yield unfinished
        except OSError as error:
            if error.errno not in _OF_DISK:
                raise
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            if replace and path.exists():
                _swap(unfinished, path, former)
            else:
                os.rename(unfinished, path)
        except OSError:
            raise InputError(f"{path}: another process has just written there") from None


@contextlib.contextmanager
def _errors_of_hdf5():
    """Turns what h5py raises where the disk is full into an OSError: closing a file it raises a
    RuntimeError that holds the number of the error in its text."""
    try:
        yield
    except RuntimeError as error:
        number = re.search(r"errno = (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _swap(new, path, former):
    """Puts a folder in the place of another, in one step where the system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # of Linux
    names = os.fsencode(new), os.fsencode(path)
    if rename and not rename(_HERE, names[0], _HERE, names[1], _EXCHANGE):
        return
    os.rename(path, former)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(former, path)
        raise
    shutil.rmtree(former, ignore_errors=True)


@contextlib.contextmanager
def _temporary_folder(path):
    """A temporary folder beside a path, whose own is made when missing. It is locked while the
    block runs, by which it differs from a killed writer's; these are removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tail = path.name[-_TAIL:]
    for left in path.parent.glob(f".tmp-*-{glob.escape(tail)}"):
        _remove_abandoned(left)
    while True:
        folder = path.parent / f".tmp-{secrets.token_hex(8)}-{tail}"
        folder.mkdir()
        # Who tidies may be faster.
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            lock = _lock(folder)
            if folder.exists():
                break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock(folder):
    """A descriptor that holds a folder, or None where there are no locks; raises BlockingIOError
    if another one holds it."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


def _remove_abandoned(path):
    """Deletes a temporary file or folder of a writer that was killed: nobody holds it, or, where
    there are no locks, nobody has written to it for an hour."""
    with contextlib.suppress(OSError):  # gone, held, or of another user
        if not is_temporary(path.name):
            return
        is_folder = path.is_dir() and not path.is_symlink()
        lock = _lock(path) if is_folder else None
        try:
            written = max(one.lstat().st_mtime for one in (path, *path.glob("*")))
            if lock is None and written > time.time() - _OLD:
                return
            if is_folder:
                shutil.rmtree(path)
            else:
                path.unlink()
        finally:
            if lock is not None:
                os.close(lock)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a text file atomically, as UTF-8."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def is_temporary(name: str) -> bool:
    """Whether a name is one of `atomic`."""
    return _LEFTOVER.fullmatch(name) is not None


def remove_leftovers(folder: str | os.PathLike, deep: bool = True) -> None:
    """Deletes what writers that were killed have left: temporary folders that nobody holds, and
    temporary files that nobody has written to for an hour. `deep`: in the folders below `folder`
    too."""
    for root, folders, files in os.walk(folder):  # what goes meanwhile is no error
        for name in filter(is_temporary, (*folders, *files)):
            _remove_abandoned(Path(root, name))
        folders[:] = [name for name in folders if deep and not is_temporary(name)]


@contextlib.contextmanager
def locked(folder):
    """Holds a run folder, made when missing, for this process while the block runs. An InputError
    if another process holds it, or the folder cannot be written."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(in_turn(folder, 0))
        except Timeout:
            raise InputError(f"another process is training in {folder}") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise InputError(f"cannot write {folder}: {error.strerror}") from error
            reason = "a file system without locks: make sure that only one process trains in it"
            warnings.warn(f"{folder} lies on {reason}", stacklevel=3)
        yield


@contextlib.contextmanager
def in_turn(folder: str | os.PathLike, wait: float = -1) -> Iterator[None]:
    """Holds a folder that threads and processes write in turn; it is made when missing. Raises
    `filelock.Timeout` after `wait` seconds; negative waits for ever."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / LOCK_FILE, timeout=wait, poll_interval=_POLL):
        yield


def flush(path: str | os.PathLike) -> None:
    """Writes a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
