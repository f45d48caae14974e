"""What is encoded: a folder of pictures, a table, lines of text or a file of vectors; counted."""

import dataclasses
import os
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from halo_search.errors import InputError
from halo_search.files.decoding import SUFFIXES
from halo_search.files.folders import HIDDEN, by_reason, is_hidden, no_image, pictures_in, printable
from halo_search.files.stores import open_file
from halo_search.files.tables import SEPARATORS, read_table
from halo_search.files.text_files import existing_folder, portable, read_lines
from halo_search.files.vector_files import located, read_vectors

PICTURES, TEXTS, ROWS = "pictures", "texts", "rows"


@dataclasses.dataclass(frozen=True)
class Items:
    """Items of one kind, in order, and how many others their source holds.

    ```python
    items = halo_search.collection.captions(["a red bird", "a blue bird"])
    len(items), items.left  # (2, {})
    ```
    """

    kind: str  # "pictures", "texts" or "rows" of a file of vectors
    names: Sequence[str]  # what to call them
    values: Sequence[Any]  # paths or the bytes of files, texts, or numbers of rows
    stamps: Sequence[str]  # size and time of each one's file, by which it is known again
    path: Any = None  # the file of vectors
    others: Sequence[tuple[str, str]] = ()  # `(name, why)` of what the source holds besides

    def __len__(self) -> int:
        return len(self.names)

    @property
    def left(self) -> dict[str, int]:
        """How many files were left out, by reason."""
        return by_reason(self.others)

    @property
    def seen(self) -> int:
        """How many items and other files the source holds."""
        return len(self) + len(self.others)

    def take(self, rows: Sequence[int]) -> "Items":
        """Some of the items; nothing is left of them."""
        some = ([part[row] for row in rows] for part in (self.names, self.values, self.stamps))
        return Items(self.kind, *some, path=self.path)


def read_source(
    source: Any,
    side: str = "images",
    column: str | None = None,
    names: Sequence[str] | None = None,
    of_vectors: bool = False,
) -> Items:
    """The items of a source; an InputError if it holds nothing, or an argument does not fit it.

    Args:
        source: a folder of pictures, a CSV or TSV file, with `side="captions"` a text file, too; or
            with `of_vectors` a file of vectors.
        side: `"images"` or `"captions"`.
        column: of a table; default `"image"` or `"caption"`.
        names: what to call the rows of a file of vectors; None for their numbers.
    """
    if of_vectors:
        return vectors(source, side, names)
    if names is not None:
        raise InputError("--names needs a file of vectors as SOURCE; this model reads no vectors")
    if side == "captions":
        return captions(source, column or "caption")
    return pictures(source, column or "image")


def pictures(source: Any, column: str = "image") -> Items:
    """The image files of a folder and its subfolders, of a table (paths are relative to the table),
    or of a list. Names are relative and printable. Raises InputError if there is no image."""
    others = []
    if isinstance(source, (list, tuple)):
        names, paths = list(map(str, source)), list(map(str, source))
    elif (source := Path(source).expanduser()).suffix in SEPARATORS:
        names = [portable(name) for name in _cells(source, column)]
        paths = [str(source.parent / name) for name in names]
    else:
        folder = existing_folder(source, "folder of images, or CSV or TSV file")
        files, others = pictures_in(folder)
        names = [path.relative_to(folder).as_posix() for path in files]
        paths = [str(path) for path in files]
    if not paths:
        raise InputError(no_image(source, others))
    stamps = list(map(stamp_of, paths))
    return Items(PICTURES, list(map(printable, names)), paths, stamps, others=others)


def captions(source: Any, column: str = "caption") -> Items:
    """The texts of one column of a table, the lines of a text file, or a list of texts; an
    InputError if there is none, or one is empty, with file and line."""
    texts = source if isinstance(source, (list, tuple)) else _cells(Path(source), column)
    names = [printable(text) for text in texts]
    # An escaped name stands for more than one text, so the text itself is the stamp.
    pairs = zip(texts, names, strict=True)
    return Items(TEXTS, names, list(texts), ["" if text == name else text for text, name in pairs])


def vectors(source: Any, side: str = "images", names: Sequence[str] | None = None) -> Items:
    """The rows of a file of vectors; an InputError if it is none, or names are not as many."""
    total = len(read_vectors(source, side))
    if names is None:
        names = [f"{side[:-1]} {row}" for row in range(total)]
    if len(names) != total:
        raise InputError(f"{source}: expected {total:,} names, found {len(names):,}")
    stamp = stamp_of(located(source)[0])
    return Items(ROWS, list(map(str, names)), range(total), [stamp] * total, path=str(source))


def members_of(
    path: Any, kind: str, skipped: Counter[str]
) -> Iterator[tuple[str, Any, str | None]]:
    """`(name, contents, None)` of a tar's pictures, by suffix, or `.txt` texts; of bad ones `(name,
    None, why not)`, which also ends a tar that is cut. Other members are counted in `left`."""
    wanted, count = SUFFIXES if kind == PICTURES else (".txt",), 0
    try:
        with open_file(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                name, suffix = member.name, PurePosixPath(member.name).suffix.lower()
                if member.isdir():
                    continue
                if not member.isfile():
                    skipped["link" if member.islnk() or member.issym() else "not a file"] += 1
                elif is_hidden(name.removeprefix("./")):
                    skipped[HIDDEN] += 1
                elif suffix not in wanted:
                    skipped[printable(suffix) or "no suffix"] += 1
                else:
                    contents, count = archive.extractfile(member).read(), count + 1
                    yield printable(name), *_checked(contents, kind)
            file.seek(-1024, os.SEEK_END)  # `tarfile` stops at half a header as at the end
            if file.read().strip(b"\0"):
                raise EOFError("it has no end")
    except (tarfile.TarError, EOFError, OSError) as error:
        yield str(path), None, f"a damaged archive behind {count} items: {error}"


def _checked(contents, kind):
    """A tar member's picture, or its text; `(None, why not)` where it is no text."""
    try:
        value = contents if kind == PICTURES else contents.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None, "expected UTF-8"
    return (value, None) if value or kind == PICTURES else (None, "expected text, found nothing")


def _cells(source, column):
    """The texts of a column or of the lines of a file; an InputError names file and line of an
    empty one."""
    source = source.expanduser()
    if source.suffix in SEPARATORS:
        numbered = [(line, value) for line, (value,) in read_table(source, [column])]
    else:
        numbered = list(enumerate(read_lines(source), start=1))
    for line, value in numbered:
        if not (value or "").strip():
            raise InputError(f"{source}:{line}: expected text as {column!r}, found nothing")
    if not numbered:
        raise InputError(f"{source}: has no rows")
    return [value.strip() for _, value in numbered]


def stamp_of(path: Any) -> str:
    """Size and time of change of a file; empty where there is none."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):  # said when it is read
        return ""
    return f"{facts.st_size}-{facts.st_mtime_ns}"
