"""Files of object stores, `s3://bucket/…` or `gs://bucket/…`, by PyArrow's filesystems.

Credentials, region and endpoint are read where the store's own tools read them: for S3 from
`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` or `~/.aws`.
"""

import contextlib
import functools
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from halo_search.errors import InputError, require
from halo_search.files.atomic import atomic, is_temporary
from halo_search.files.json_files import parsed
from halo_search.files.written import KEY, Written, read_sealed, sealed

_LOCAL = "file://"
_DENIED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|"
    r"SignatureDoesNotMatch|AccessDenied|Forbidden|HTTP status 40[13]|status 40[13]|"
    r"UNAUTHENTICATED|PERMISSION_DENIED",
)


class StoredFile(NamedTuple):
    """A file of a listing: its address, its size in bytes and its time of change in ns."""

    path: str
    size: int
    changed: int

    @property
    def stamp(self) -> str:
        """Size and time of change, by which an unchanged file is recognised."""
        return f"{self.size}-{self.changed}"


def is_remote(path: Any) -> bool:
    """Whether a path names an object store, `gs://bucket/photos`."""
    return "://" in str(path) and not str(path).startswith(_LOCAL)


def plain(path: Any) -> str:
    """A path without `file://` and without a slash at its end."""
    text = str(path).removeprefix(_LOCAL)
    return text.rstrip("/") or text[:1]


def open_file(path: Any) -> Any:
    """A file here or in an object store, open for reading bytes. Raises InputError if it cannot be
    read."""
    with _as_input_error(path):
        if not is_remote(path):
            return open(plain(path), "rb")
        system, inside = _located(path)
        return system.open_input_file(inside)


def write_file(path: Any, contents: bytes) -> None:
    """Writes a file here or in an object store: it is complete or it does not exist. Raises
    InputError if it cannot be written."""
    if not is_remote(path):
        with atomic(plain(path)) as temporary:
            temporary.write_bytes(contents)
        return
    with _as_input_error(path):
        system, inside = _located(path)
        with system.open_output_stream(inside) as stream:  # an object appears when it is closed
            stream.write(contents)


def files_below(folder: Any, deep: bool = True) -> Iterator[StoredFile]:
    """The files of a folder of an object store, with all folders below it unless not `deep`;
    none if it does not exist. Raises InputError if it cannot be listed."""
    fs = _filesystems()
    with _as_input_error(folder):
        system, inside = _located(folder)
        scheme = str(folder).partition("://")[0]
        wanted = fs.FileSelector(inside, allow_not_found=True, recursive=deep)
        for entry in system.get_file_info(wanted):
            if entry.type == fs.FileType.File:
                path = f"{scheme}://{entry.path}"
                yield StoredFile(path, entry.size or 0, entry.mtime_ns or 0)


def file_at(path: Any) -> StoredFile | None:
    """One file of an object store, or None where it does not exist. Raises InputError if the store
    refuses."""
    fs = _filesystems()
    with _as_input_error(path):
        system, inside = _located(path)
        entry = system.get_file_info(inside)
        if entry.type != fs.FileType.File:
            return None
        return StoredFile(str(path), entry.size or 0, entry.mtime_ns or 0)


def delete_file(path: Any) -> None:
    """Deletes a file of an object store. Raises InputError if the store refuses."""
    with _as_input_error(path):
        system, inside = _located(path)
        system.delete_file(inside)


def refusal(path: Any, error: BaseException) -> InputError:
    """What a store's client said of a path, in one sentence."""
    message = " ".join(str(error).split())
    if _DENIED.search(message):
        return InputError(
            f"{path}: the store refused these credentials or gives them no access; check the "
            "key, for S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if isinstance(error, OSError) and error.strerror:
        message = error.strerror
    return InputError(f"{path}: {message}")


def written_in(folder: Any, name: str) -> Written:
    """The `Written` of a folder here or in an object store."""
    return StoreWritten(plain(folder), name) if is_remote(folder) else Written(plain(folder), name)


class StoreWritten(Written):
    """`Written` for a folder of an object store, whose objects are replaced in one step."""

    def __init__(self, folder: str, name: str):
        self.folder, self.path = folder, f"{folder}/{name}"

    @property
    def content(self) -> dict[str, Any]:
        """As `Written.content`."""
        if file_at(self.path) is None:
            return {}
        with open_file(self.path) as file:
            return read_sealed(self.path, parsed(self.path, file.read()))

    def present(self) -> set[str]:
        """The names of the files and folders directly in the folder."""
        start = len(self.folder) + 1
        return {file.path[start:].partition("/")[0] for file in files_below(self.folder)}

    def foreign(self) -> list[str]:
        """As `Written.foreign`."""
        known = self.names | {self.path.rpartition("/")[2]}
        return sorted(
            name for name in self.present() if name not in known and not is_temporary(name)
        )

    def check(self) -> None:
        """As `Written.check`."""
        self._refuse(self.foreign())

    def claim(self, *names: str) -> None:
        """As `Written.claim`."""
        if new := set(names) - self.names:
            self._refuse(sorted(new & self.present()))
            self.write(self.content, self.names | new)

    def write(self, content: dict[str, Any], names: Iterable[str] | None = None) -> None:
        """As `Written.write`."""
        listed = sorted(self.names if names is None else names)
        text = json.dumps(sealed({**content, KEY: listed}), indent=2) + "\n"
        write_file(self.path, text.encode())

    def remove(self, names: Iterable[str]) -> None:
        """As `Written.remove`."""
        gone = set(names) & self.names
        for file in list(files_below(self.folder)) if gone else ():
            if file.path[len(self.folder) + 1 :].partition("/")[0] in gone:
                delete_file(file.path)
        if gone:
            self.write(self.content, self.names - gone)

    def tidy(self) -> None:
        """Nothing to do: a writer that is killed leaves no object."""


def present_in(written: Written) -> set[str]:
    """The names in the folder of a list."""
    if isinstance(written, StoreWritten):
        return written.present()
    folder = Path(written.folder)
    return set(os.listdir(folder)) if folder.is_dir() else set()


@contextlib.contextmanager
def _as_input_error(path):
    """Turns an error of Arrow's in the block into an InputError about the path."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:  # Arrow's own errors are kinds of both
        raise refusal(path, error) from error


def _located(path):
    """`(filesystem, path in it)`. Letters such as `#` and `%` in the path stand for themselves."""
    scheme, _, inside = str(path).partition("://")
    return _filesystem(scheme, inside.partition("/")[0], os.getpid()), inside.rstrip("/")


def _filesystems():
    """`pyarrow.fs`, which only object stores need. Raises MissingPackageError."""
    return require("pyarrow.fs", extra="arrow")


@functools.cache
def _filesystem(scheme, bucket, process):
    """The filesystem of a bucket. A process that was forked opens its own."""
    fs = _filesystems()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if scheme in ("s3", "s3a") and (region or endpoint):
        return fs.S3FileSystem(region=region, endpoint_override=endpoint)
    return fs.FileSystem.from_uri(f"{scheme}://{bucket}")[0]
