"""Files and folders that are either whole or not there, whenever the process dies."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from zoo.errors import InputError

_LEFTOVER = re.compile(r"\.tmp-(\d+)-.+")


@contextlib.contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` when the block ends without an error.

    The temporary file lies in the same folder, because a rename is atomic only within one file
    system, and it keeps the suffix, because Keras chooses its format by it. Content, then name,
    are flushed to the disk.

    ```python
    with atomic(folder / "model.keras") as temporary:
        model.save(temporary)
    ```

    Args:
        path: the file to write or to replace. Its folder is made when missing.

    Raises:
        InputError: if the file cannot be written (disk full, read-only, no permission). What was
            at `path` before is untouched.
    """
    path = Path(os.path.abspath(path))  # the writer, or what it calls, may join it with a folder
    temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    except OSError as error:
        # h5py reports a full disk by an OSError without strerror.
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike, replace: bool = False) -> Iterator[Path]:
    """A temporary folder to fill, which becomes `path` when the block ends without an error.

    It lies beside `path`, and its name starts with a point: a server takes no such version.

    Args:
        path: the folder to make.
        replace: whether a folder at `path` gives way. Otherwise it must not exist, or be empty.

    Raises:
        InputError: if no folder can be made there, or another process has just filled it.
    """
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


def remove_leftovers(folder: str | os.PathLike) -> None:
    """Deletes the temporary files of processes that were killed while writing.

    Files of another process that is still alive stay.

    Args:
        folder: searched with all folders below it.
    """
    for path in Path(folder).rglob(".tmp-*"):
        match = _LEFTOVER.fullmatch(path.name)
        if match and not _writes(int(match[1])):
            with contextlib.suppress(OSError):
                path.unlink()


def _writes(process):
    # A file of this process' own number is from a predecessor: in containers numbers come again.
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to someone else
        return True
    return True


def _flush(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
