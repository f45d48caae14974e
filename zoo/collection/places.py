"""Files here and in an object store: a path with `://` goes through Apache Beam's file systems."""

import contextlib
import fnmatch
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from zoo.errors import InputError, require
from zoo.files.atomic import atomic


def is_remote(path: Any) -> bool:
    """Whether a path names an object store, `gs://bucket/photos`."""
    return "://" in str(path)


def join(folder: Any, name: str) -> str:
    """The path of a file in a folder."""
    return f"{str(folder).rstrip('/')}/{name}"


def open_file(path: Any) -> BinaryIO:
    """Opens a file for reading bytes; an InputError if it cannot be opened."""
    try:
        return _stores().open(str(path)) if is_remote(path) else open(path, "rb")
    except OSError as error:  # Beam's own is one
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def read_bytes(path: Any) -> bytes:
    """All bytes of a file; raises as `open_file`."""
    with open_file(path) as file:
        return file.read()


@contextlib.contextmanager
def written(path: Any) -> Iterator[BinaryIO]:
    """A file to write to, which is at `path` whole when the block ends, and else not at all.

    Two workers may write the same file: each writes one of its own, and the renames follow each
    other. An InputError if it cannot be written.
    """
    if not is_remote(path):
        with atomic(path) as temporary, open(temporary, "wb") as file:
            yield file
        return
    folder, _, name = str(path).rpartition("/")
    temporary = f"{folder}/.tmp-{uuid.uuid4().hex}-{name}"
    stores = _stores()
    try:
        with stores.create(temporary) as file:
            yield file
        stores.rename([temporary], [str(path)])
    except OSError as error:  # Beam's own is one
        raise InputError(f"cannot write {path}: {error}") from error


def matching(folder: Any, pattern: str) -> list[str]:
    """Paths of the files in a folder whose names match, sorted; the folder need not exist.

    The pattern is of a name, `"shard-*"`; `"**"` finds the files of all folders below.
    """
    if not is_remote(folder):
        found = Path(folder).rglob("*") if pattern == "**" else Path(folder).glob(pattern)
        return sorted(str(path) for path in found if path.is_file())
    (result,) = _stores().match([join(folder, pattern)])
    paths = sorted(entry.path for entry in result.metadata_list)
    if pattern == "**":
        return paths
    return [path for path in paths if fnmatch.fnmatch(path.rpartition("/")[2], pattern)]


def _stores():
    require("apache_beam", extra="beam")
    from apache_beam.io.filesystems import FileSystems

    return FileSystems
