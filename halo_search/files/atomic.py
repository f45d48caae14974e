"""Files and folders that are whole or not there, and writers that take turns."""

import contextlib
import errno
import os
import re
import secrets
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from halo_search.errors import InputError

_LEFTOVER = re.compile(r"\.tmp-[0-9a-f]{16}-.+")
_TAIL = 40  # characters of a name that its temporary one keeps: the two share a limit
_OLD = 3600  # seconds after the last write, from which a temporary file is a killed writer's
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
LOCK_FILE = ".lock"
_POLL = 0.01  # seconds between two attempts


@contextlib.contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` when the block ends without an error; else
    what was there is untouched. An InputError if it cannot be written.

    It lies in the same folder, which is made when missing, and keeps the suffix, by which Keras
    chooses its format. Content, then name, are flushed to the disk.

    ```python
    with atomic(folder / "model.keras") as temporary:
        model.save(temporary)
    ```
    """
    path = Path(os.path.abspath(path))  # the writer, or what it calls, may join it with a folder
    temporary = path.parent / f".tmp-{secrets.token_hex(8)}-{path.name[-_TAIL:]}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
        flush(path.parent)
    except OSError as error:
        # h5py reports a full disk by an OSError without strerror.
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


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
    """Whether a name is one of `atomic`."""
    return _LEFTOVER.fullmatch(name) is not None


def remove_leftovers(folder: str | os.PathLike, deep: bool = True) -> None:
    """Deletes temporary files that nobody has written to for an hour: their writers were killed.
    `deep`: in the folders below `folder` too."""
    folder = Path(folder)
    for path in folder.rglob(".tmp-*") if deep else folder.glob(".tmp-*"):
        with contextlib.suppress(OSError):  # gone, or of another user
            if is_temporary(path.name) and path.lstat().st_mtime < time.time() - _OLD:
                path.unlink()


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
