"""What a source holds: the pictures of a folder or a table, the captions of a table or a text."""

from collections import Counter
from pathlib import Path
from typing import Any

from zoo.collection import places
from zoo.data.reading.files import existing_folder, read_lines
from zoo.data.reading.pictures import SUFFIXES
from zoo.data.reading.tables import SEPARATORS, read_table
from zoo.errors import InputError


def list_images(source: Any, column: str = "image") -> tuple[list[str], list[str]]:
    """The image files of a folder with all folders below it, or of a table.

    Args:
        source: a folder, here or in an object store; or a CSV or TSV file with paths relative to
            its own folder.
        column: of the paths in a table.

    Returns:
        `(names, paths)`: names relative to the folder, sorted in the case of a folder.

    Raises:
        InputError: if there is none.
    """
    if places.is_remote(source):
        paths = [p for p in places.matching(source, "**") if _suffix(p) in SUFFIXES]
        start = len(places.join(source, ""))
        names = [path[start:] for path in paths]
    else:
        source = Path(source).expanduser()
        if source.suffix in SEPARATORS:
            names = list_captions(source, column)
            return names, [str(source.parent / name) for name in names]
        folder = existing_folder(source, "folder of images, or CSV or TSV file")
        found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        names = [path.relative_to(folder).as_posix() for path in found]
        paths = [str(path) for path in found]
    if not paths:
        raise InputError(f"{source}: holds no image ({', '.join(SUFFIXES)})")
    return names, paths


def left_out(source: Any) -> dict[str, int]:
    """How many files of a folder are no pictures by their suffix: `{suffix: count}`, most first.

    Args:
        source: as of `list_images`; a table and an object store leave out nothing. Hidden files
            are not counted.
    """
    if places.is_remote(source) or not Path(source).expanduser().is_dir():
        return {}
    others = (
        path.suffix.lower() or "no suffix"
        for path in Path(source).expanduser().rglob("*")
        if path.is_file() and path.suffix.lower() not in SUFFIXES and path.name[0] != "."
    )
    return dict(Counter(others).most_common())


def list_captions(source: Any, column: str = "caption") -> list[str]:
    """The texts of one column of a table, or the lines of a text file.

    Raises:
        InputError: if there is none, or one is empty, with file and line.
    """
    source = Path(source).expanduser()
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


def _suffix(path):
    return "." + path.rpartition(".")[2].lower()
