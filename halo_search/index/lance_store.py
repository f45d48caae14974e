"""The folder of a LanceDB index: its table, the manifest that names the saved state of the table,
and whose turn it is to change it."""

import contextlib
import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from halo_search.errors import InputError, require
from halo_search.files.array_files import read_array, read_arrays
from halo_search.files.atomic import LOCK_FILE
from halo_search.files.environment import cache_folder
from halo_search.files.stores import (
    is_remote,
    open_file,
    plain,
    refusal,
    write_file,
    written_in,
)
from halo_search.files.written import KEY, Written, read_sealed
from halo_search.index.storage import SAVED_MEANWHILE

require("lancedb", extra="large")

import lancedb  # noqa: E402

ENGINE, VERSION, MANIFEST = "lance", 1, "index.json"
TABLE, FOLDER, BANK_FILE = "items", "items.lance", "questions.npy"
_MOMENTS = "moments-"


class LanceStore:
    """A table in a folder, here or in an object store.

    Changes are saved by `commit`. From the first change to the commit nobody else can change the
    folder; who opened it before has to open it again.

    Attributes:
        folder: a path, or the address of a folder of an object store.
        table: LanceDB's.
    """

    def __init__(self, folder: Any, table: Any, saved_version: int | None, is_behind: bool = False):
        self.folder, self.table = folder, table
        # The table's version that the manifest named when it was last read or written.
        self._saved_version: int | None = saved_version
        self._is_behind = is_behind  # whether the table has states after the saved one
        self._turn = _turn_of(folder)  # held while there are changes that are not saved
        self._process = os.getpid()

    @classmethod
    def create(cls, folder: Any, schema: Any) -> "LanceStore":
        """An empty table in a folder of `claimed`; an InputError if it cannot be written."""
        try:
            table = _connect(folder).create_table(TABLE, schema=schema)
        except (OSError, RuntimeError) as error:
            raise not_written(folder, error) from error
        return cls(folder, table, None)

    @classmethod
    def open(cls, folder: Any) -> tuple["LanceStore", dict[str, Any], Any, Any]:
        """A saved table, `(store, description, moments, bank)`: what `commit` was given, arrays by
        name or None. An InputError if it is none or damaged."""
        try:
            saved = _manifest(folder)
            moments = bank = None
            if saved["moments"] is not None:
                with _local_copy(folder, saved["moments"]) as file:
                    moments = read_arrays(file)
            if "hubs" in saved["description"]:
                with _local_copy(folder, BANK_FILE) as file:
                    bank = np.array(read_array(file))
            table = _connect(folder).open_table(TABLE)
            version = saved["table_version"]
            if is_behind := table.version != version:
                table.checkout(version)
        except (OSError, ValueError, RuntimeError) as error:  # as LanceDB says what is damaged
            if isinstance(error, InputError):
                raise
            if is_remote(folder):
                raise refusal(folder, error) from error
            reason = first_line(error)
            raise InputError(f"{folder}: cannot be read as an index: {reason}") from error
        return cls(folder, table, version, is_behind), saved["description"], moments, bank

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Reads of the table: an InputError if its files are gone, a RuntimeError in a fork."""
        if os.getpid() != self._process:
            raise RuntimeError("LanceDB does not survive a fork: load the index in this process")
        try:
            yield
        except (RuntimeError, ValueError) as error:
            if "Not found:" not in str(error):
                raise
            raise InputError(
                f"{self.folder}: its files are gone or were replaced; load the index again"
            ) from None

    def begin_change(self) -> None:
        """Takes the turn to change the folder; an InputError if another process has it, or has
        saved since this index was loaded."""
        with self.reading():
            if not self._turn.is_locked:
                self._take_turn()
            if self._is_behind:  # what a killed process added after the saved state is left out
                with self.writing():
                    self.table.restore()
                self._is_behind = False

    def _take_turn(self):
        """Locks the folder for a change of the state that this index has read."""
        try:
            self._turn.acquire()
        except Timeout:
            raise InputError(f"{self.folder}: another process changes this index") from None
        except OSError as error:
            raise not_written(self.folder, error) from error
        named = written_in(self.folder, MANIFEST).content.get("table_version")
        if named != self._saved_version:
            self._turn.release()
            raise InputError(f"{self.folder}: {SAVED_MEANWHILE}")

    @property
    def is_changing(self) -> bool:
        """Whether there are changes that are not saved."""
        return self._turn.is_locked

    def end_change(self) -> None:
        """Lets others change the folder."""
        self._turn.release(force=True)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Writes of the table: an InputError where the folder cannot be written."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise not_written(self.folder, error) from error

    def commit(self, description: dict[str, Any], moments: Any, bank: Any) -> None:
        """Writes what lies beside the table, arrays by name and an array, each or None, and then
        the manifest that names its state."""
        written, name = written_in(self.folder, MANIFEST), None
        if moments is not None:
            name = f"{_MOMENTS}{self.table.version}.npz"
            written.claim(name)
            file = io.BytesIO()
            np.savez(file, **moments)
            write_file(f"{self.folder}/{name}", file.getvalue())
        if bank is not None:
            file = io.BytesIO()
            np.save(file, bank)
            write_file(f"{self.folder}/{BANK_FILE}", file.getvalue())
        state = {"version": VERSION, "engine": ENGINE, "table_version": self.table.version}
        written.write({**state, "description": description, "moments": name})
        self._saved_version = self.table.version
        old = {other for other in written.names if other.startswith(_MOMENTS)} - {name}
        written.remove(old)

    def moved(self, folder: Any) -> "LanceStore":
        """This table, linked or copied into another folder, new or empty; a change of either leaves
        the other as it is. Nothing is left there where that fails."""
        if is_remote(folder) or is_remote(self.folder):
            raise InputError(
                f"{folder}: an index that lies in {self.folder} is saved there only; build another"
            )
        claimed(folder).claim(FOLDER, BANK_FILE)
        try:
            shutil.copytree(self.folder / FOLDER, folder / FOLDER, copy_function=_link)
            table = _connect(folder).open_table(TABLE)
            if is_behind := table.version != self.table.version:
                table.checkout(self.table.version)
        except BaseException:
            _empty(folder)
            raise
        return LanceStore(folder, table, None, is_behind)

    def discard(self) -> None:
        """Removes the table and what lies beside it, as far as that is possible."""
        self.end_change()
        _empty(self.folder)


def place(folder: Any) -> Any:
    """A path, or the address of a folder of an object store."""
    return plain(folder) if is_remote(folder) else Path(plain(folder))


def claimed(folder: Any) -> Written:
    """The list of a folder that is new, empty, or of a build that was stopped; an InputError if it
    holds an index."""
    written = written_in(folder, MANIFEST)
    written.check()
    if set(written.content) - {KEY}:
        raise InputError(f"{folder}: holds an index; choose another folder")
    written.remove(written.names)
    return written


def _empty(folder):
    """Removes what a save that failed has written."""
    with contextlib.suppress(OSError, InputError):  # the error is what stopped the save
        written = written_in(folder, MANIFEST)
        written.remove(written.names)


def first_line(error: Exception) -> str:
    """What LanceDB says, without where in its code."""
    return str(error).splitlines()[0]


def not_written(folder: Any, error: Exception) -> InputError:
    """The InputError of a folder that cannot be written, as of a full disk."""
    reason = getattr(error, "strerror", None) or first_line(error)
    return InputError(f"{folder}: cannot write the index: {reason}")


def _manifest(folder):
    """The manifest of a folder; an InputError unless it is of this engine and version."""
    path = f"{folder}/{MANIFEST}"
    saved = written_in(folder, MANIFEST).content if is_remote(folder) else read_sealed(path)
    if (saved.get("engine"), saved.get("version")) != (ENGINE, VERSION):
        raise InputError(f"{path}: of another version; build the index again")
    return saved


def _connect(folder):
    """LanceDB in a folder. Its client of object stores reads the environment too, but asks for
    `AWS_ALLOW_HTTP` where an endpoint has no TLS."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not str(folder).startswith("s3://") or not endpoint:
        return lancedb.connect(folder)
    options = {"aws_endpoint": endpoint, "allow_http": str(endpoint.startswith("http:")).lower()}
    return lancedb.connect(folder, storage_options=options)


@contextlib.contextmanager
def _local_copy(folder, name):
    """The path of a file of a folder, copied to this machine for the block where it is remote."""
    if not is_remote(folder):
        yield folder / name
        return
    with open_file(f"{folder}/{name}") as file, tempfile.TemporaryDirectory() as here:
        copy = Path(here) / name
        copy.write_bytes(file.read())
        yield copy


def _turn_of(folder):
    """The lock of a folder that one index at a time changes, from whichever thread."""
    if is_remote(folder):  # writers of this machine take turns; those of others are the store's
        file = cache_folder("locks", hashlib.sha256(str(folder).encode()).hexdigest())
        file.parent.mkdir(parents=True, exist_ok=True)
    else:
        file = folder / LOCK_FILE
    return FileLock(file, timeout=0, thread_local=False)


def _link(source, target):
    """A second name of a file, which LanceDB never changes; a copy on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
