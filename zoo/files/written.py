"""What this program wrote into a folder, by a list in that folder: nothing else is ever replaced.

A writer lists a name before it makes the file or folder, so that a killed one leaves nothing that
is not listed. What is not listed is the user's: it stops the writer before anything is written.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zoo.errors import InputError
from zoo.files.atomic import LOCK_FILE, is_temporary, remove_leftovers, write_text
from zoo.files.json_files import read_object

LIST, KEY = "written.json", "written"


class Written:
    """The list of one folder, under the key `written` of its JSON file `name`, which may say other
    things too; the first `claim` or `write` makes the folder."""

    def __init__(self, folder: str | os.PathLike, name: str = LIST):
        self.folder, self.path = Path(folder), Path(folder) / name

    @property
    def content(self) -> dict[str, Any]:
        """What the file says, `{}` where there is none; an InputError if it is damaged."""
        return read_object(self.path) if self.path.is_file() else {}

    @property
    def names(self) -> set[str]:
        """The names that the program wrote or was about to write."""
        listed = self.content.get(KEY, [])
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise InputError(f"{self.path}: expected names as {KEY!r}, found {listed!r}")
        return {name for name in listed if _is_plain(name)}

    def foreign(self) -> list[str]:
        """Names in the folder that the program did not write, sorted."""
        if not self.folder.is_dir():
            return []
        # In this order, since others may claim and remove names meanwhile.
        there = [path.name for path in self.folder.iterdir() if not is_temporary(path.name)]
        content = self.content
        own = self.names | {LOCK_FILE} | ({self.path.name} if KEY in content else set())
        return sorted(name for name in there if name not in own and self._has(name))

    def check(self) -> None:
        """Raises an InputError that names what the program did not write, if there is any."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder}: expected a folder, found a file")
        self._refuse(self.foreign())

    def claim(self, *names: str) -> None:
        """Lists names that are about to be written; an InputError, before anything is written, if
        one exists and is not listed, or the list cannot be written."""
        new = set(names) - self.names
        self._refuse(sorted(name for name in new if os.path.lexists(self.folder / name)))
        if new:
            self.write(self.content, self.names | new)

    def write(self, content: dict[str, Any], names: Iterable[str] | None = None) -> None:
        """Replaces what the file says; the list stays unless another is given."""
        listed = sorted(self.names if names is None else names)
        text = json.dumps({**content, KEY: listed}, indent=2)
        write_text(self.path, text + "\n")

    def remove(self, names: Iterable[str]) -> None:
        """Deletes files and folders that are listed, and takes them off the list; others stay."""
        gone = set(names) & self.names
        for name in gone:
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        if gone:
            self.write(self.content, {n for n in self.names if n not in gone or self._has(n)})

    def tidy(self) -> None:
        """Deletes the temporary files that killed writers left here and in listed folders."""
        remove_leftovers(self.folder, deep=False)
        for name in self.names:
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                remove_leftovers(path)

    def _has(self, name):
        return os.path.lexists(self.folder / name)

    def _refuse(self, names):
        if names:
            more = f" and {len(names) - 1} more" if names[1:] else ""
            raise InputError(
                f"{self.folder}: holds {names[0]}{more}, which this program did not write; choose "
                "another folder, or move it away"
            )


def _is_plain(name):
    """Whether a name is that of an entry of the folder, and leads nowhere else."""
    return bool(name) and name not in (".", "..") and Path(name).name == name
