"""The pictures of a folder, and names of files that can be printed and stored."""

import fnmatch
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from zoo.files.decoding import SUFFIXES

# What systems put beside photos: copies that nobody took for pictures of their own.
SYSTEM_FOLDERS = ("@eaDir", "__MACOSX", "#recycle", "$RECYCLE.BIN")
HIDDEN, EXCLUDED = "hidden", "excluded"
UNPRINTABLE = "a name that is not UTF-8 or holds control characters; rename the file"
# How the folder of a question's tower begins in an index; the hash of its model follows.
TOWERS = "towers-"
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # controls, what is not UTF-8, ends of lines and paragraphs


def pictures_in(
    folder: str | os.PathLike, exclude: Sequence[str] = ()
) -> tuple[list[Path], dict[str, int]]:
    """The pictures below a folder by suffix, sorted, without hidden ones and those that `exclude`
    matches; and how many files were left out, by suffix, `HIDDEN` or `EXCLUDED`."""
    folder, found, others = Path(folder), [], Counter()
    for path in sorted(folder.rglob("*")):
        name, suffix = path.relative_to(folder).as_posix(), path.suffix.lower()
        if not path.is_file():
            continue
        if is_hidden(name):
            others[HIDDEN] += suffix in SUFFIXES
        elif matches(name, exclude):
            others[EXCLUDED] += 1
        elif suffix in SUFFIXES:
            found.append(path)
        else:
            others[printable(suffix) or "no suffix"] += 1
    return found, {kind: count for kind, count in others.most_common() if count}


def is_hidden(name: str) -> bool:
    """Whether a relative path is hidden or of the system, by any of its parts."""
    parts = PurePosixPath(name).parts
    return any(part.startswith(".") or part in SYSTEM_FOLDERS for part in parts)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a relative path matches one of some patterns (`fnmatch`). A pattern with a `/` within
    is compared with the path, another with each of its parts."""
    for pattern in (one.rstrip("/") for one in patterns):
        ones = (name,) if "/" in pattern else PurePosixPath(name).parts
        if any(fnmatch.fnmatchcase(one, pattern) for one in ones):
            return True
    return False


def printable(name: str) -> str:
    """A name on one line of UTF-8: other bytes and control characters are escaped."""
    if name.isprintable():
        return name
    return "".join(_escaped(one) for one in name)


def _escaped(character):
    if unicodedata.category(character) not in _UNPRINTABLE:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte of a name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
