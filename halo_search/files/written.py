"""What this program wrote into a folder, by a list in that folder: nothing else is ever replaced.

A writer lists a name before it makes the file or folder, so that a killed one leaves nothing that
is not listed. What is not listed is the user's: it stops the writer before anything is written. A
list also has a checksum of itself, and may have those of files: damage ends in one sentence.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from halo_search.errors import InputError
from halo_search.files.atomic import LOCK_FILE, is_temporary, remove_leftovers, write_text
from halo_search.files.json_files import read_object

LIST, KEY, SEAL = "written.json", "written", "checksum"


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """What a file is to say, with a checksum of that."""
    return {**content, SEAL: _checksum(json.loads(json.dumps(content)))}


def read_sealed(path: str | os.PathLike, content: Any = None) -> dict[str, Any]:
    """What a file of `sealed` says, or what was read of it; an InputError if it is damaged, of
    another program or of an older version."""
    content = read_object(path) if content is None else content
    if not isinstance(content, dict) or SEAL not in content:
        folder, _, name = str(path).rpartition("/")
        raise InputError(
            f"{folder}: holds {name}, which this program did not write, or an older version did; "
            "choose another folder, or build it again"
        )
    if content.pop(SEAL) != _checksum(content):
        raise InputError(f"{path}: is damaged, or was changed by hand: its checksum differs")
    return content


def facts_of(path: Path) -> dict[str, str]:
    """The checksum of a file."""
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def check_facts(path: Path, facts: dict[str, str], contents: bytes | None = None) -> None:
    """Raises an InputError unless a file, or its contents, are as `facts_of` it were."""
    try:
        actual = facts_of(path)["sha256"] if contents is None else _sha256(contents)
    except FileNotFoundError:
        raise InputError(f"{path}: is missing") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if actual != facts["sha256"]:
        raise InputError(f"{path}: is damaged: its checksum is another than when saved")


def _checksum(content):
    return _sha256(json.dumps(content, sort_keys=True).encode())


def _sha256(contents):
    return hashlib.sha256(contents).hexdigest()


class Written:
    """The list of one folder, under the key `written` of its JSON file `name`, which may say other
    things too; the first `claim` or `write` makes the folder."""

    def __init__(self, folder: str | os.PathLike, name: str = LIST):
        self.folder, self.path = Path(folder), Path(folder) / name

    @property
    def content(self) -> dict[str, Any]:
        """What the file says, `{}` where there is none; an InputError if it is damaged."""
        return read_sealed(self.path) if self.path.is_file() else {}

    @property
    def names(self) -> set[str]:
        """The names that the program wrote or was about to write, none that leads elsewhere."""
        listed = self.content.get(KEY, ())
        return {name for name in listed if Path(name).name == name not in ("", "..")}

    def foreign(self) -> list[str]:
        """Names in the folder that the program did not write, sorted."""
        if not self.folder.is_dir():
            return []
        # In this order, since others may claim and remove names meanwhile.
        there = [path.name for path in self.folder.iterdir() if not is_temporary(path.name)]
        known = self.names | {LOCK_FILE, self.path.name}
        return sorted(name for name in there if name not in known and self._has(name))

    def check(self) -> None:
        """Raises an InputError that names what the program did not write, if there is any."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder}: expected a folder, found a file")
        self._refuse(self.foreign())

    def claim(self, *names: str) -> None:
        """Lists names that are about to be written; an InputError if one exists and is not listed,
        or the list cannot be written. Nothing is written then."""
        new = set(names) - self.names
        self._refuse(sorted(filter(self._has, new)))
        if new:
            self.write(self.content, self.names | new)

    def write(self, content: dict[str, Any], names: Iterable[str] | None = None) -> None:
        """Replaces what the file says; the list stays unless another is given."""
        listed = sorted(self.names if names is None else names)
        write_text(self.path, json.dumps(sealed({**content, KEY: listed}), indent=2) + "\n")

    def remove(self, names: Iterable[str]) -> None:
        """Deletes listed files and folders and removes them from the list; other files stay."""
        gone = set(names) & self.names
        for path in (self.folder / name for name in gone):
            with contextlib.suppress(OSError):
                (shutil.rmtree if _is_folder(path) else os.unlink)(path)
        if gone:
            self.write(self.content, {n for n in self.names if n not in gone or self._has(n)})

    def tidy(self) -> None:
        """Deletes the temporary files that killed writers left here and in listed folders."""
        remove_leftovers(self.folder, deep=False)
        for path in filter(_is_folder, (self.folder / name for name in self.names)):
            remove_leftovers(path)

    def _has(self, name):
        return os.path.lexists(self.folder / name)

    def _refuse(self, names):
        """Raises an InputError about names that this program did not write, if there are any."""
        if names:
            more = f" and {len(names) - 1} more" if names[1:] else ""
            raise InputError(
                f"{self.folder}: holds {names[0]}{more}, which this program did not write; choose "
                "another folder, or move it away"
            )


def _is_folder(path):
    return path.is_dir() and not path.is_symlink()
