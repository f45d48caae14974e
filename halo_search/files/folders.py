"""The pictures of a folder, and names of files that can be printed and stored."""

import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from halo_search.files.decoding import SUFFIXES

# What systems put beside photos: copies that nobody took for pictures of their own.
SYSTEM_FOLDERS = ("@eaDir", "__MACOSX", "#recycle", "$RECYCLE.BIN")
HIDDEN = "hidden"
NOT_HERE = "in iCloud and not on this disk; download it"  # of `.IMG_1.HEIC.icloud`
UNPRINTABLE = "a name that is not UTF-8 or holds control characters; rename the file"
_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # letters that follow
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # controls, what is not UTF-8, ends of lines and paragraphs


def pictures_in(folder: str | os.PathLike) -> tuple[list[Path], list[tuple[str, str]]]:
    """The pictures below a folder by suffix, sorted, without hidden ones; and `(name, why)` of
    every file, link and closed folder that was left out."""
    folder, pictures, others = Path(folder), [], []

    def closed(error):
        others.append((_below(error.filename), (error.strerror or "cannot be read").lower()))

    def _below(path):
        return Path(path).relative_to(folder).as_posix()

    for where, folders, files in os.walk(folder, onerror=closed):
        for path in (Path(where, name) for name in (*files, *folders)):
            name, suffix = _below(path), path.suffix.lower()
            if path.is_dir():
                if path.is_symlink():
                    others.append((name, "link to a folder"))
            elif is_hidden(name):
                others.append((name, NOT_HERE if suffix == ".icloud" else HIDDEN))
            elif not path.is_file():
                others.append((name, "broken link" if path.is_symlink() else "not a file"))
            elif suffix in SUFFIXES:
                pictures.append(path)
            else:
                others.append((name, printable(suffix) or "no suffix"))
    return sorted(pictures), sorted((printable(name), why) for name, why in others)


def by_reason(others: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many `(name, why)` there are, by why."""
    return dict(Counter(why for _, why in others).most_common())


def counted(count: Mapping[str, Any]) -> str:
    """`{"seen", "taken", "left": {why: how many}}` in words."""
    kinds = ", ".join(f"{number:,} {why}" for why, number in count["left"].items())
    skipped = f"{sum(count['left'].values()):,} left" + (f" ({kinds})" if kinds else "")
    return f"{count['seen']:,} seen, {count['taken']:,} taken, {skipped}"


def no_image(source: Any, others: Sequence[tuple[str, str]] = ()) -> str:
    """What to say of a source without pictures."""
    skipped = by_reason(others)
    counts = counted({"seen": len(others), "taken": 0, "left": skipped})
    hint = "; `halo search encode --cluster auto` reads tars" if ".tar" in skipped else ""
    return f"{source}: holds no image ({', '.join(SUFFIXES)}); {counts}{hint}"


def is_hidden(name: str) -> bool:
    """Whether a relative path is hidden or of the system, by any of its parts."""
    parts = PurePosixPath(name).parts
    return any(part.startswith(".") or part in SYSTEM_FOLDERS for part in parts)


def printable(name: str) -> str:
    """A name on one line of UTF-8: other bytes and control characters are escaped."""
    return name if name.isprintable() else "".join(map(_escaped, name))


def _escaped(character):
    if unicodedata.category(character) not in _UNPRINTABLE and character not in _TURNING:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte of a name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
