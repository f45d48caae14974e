"""What a source holds: the pictures of a folder or a table, the captions of a table or a text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zoo.collection import places
from zoo.errors import InputError
from zoo.files.decoding import SUFFIXES
from zoo.files.folders import is_hidden, matches, pictures_in, printable
from zoo.files.tables import SEPARATORS, read_table
from zoo.files.text_files import existing_folder, portable, read_lines


def list_images(
    source: Any, column: str = "image", exclude: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The image files of a folder with all folders below it, or of a table.

    Args:
        source: a folder, here or in an object store; or a CSV or TSV file with paths relative to
            its own folder.
        column: of the paths in a table.
        exclude: patterns of names to leave out of a folder, see
            `zoo.files.folders.pictures_in`, which leaves out hidden files too.

    Returns:
        `(names, paths)`: names relative to the folder, sorted in the case of a folder, with what
        cannot be printed escaped.

    Raises:
        InputError: if there is none.
    """
    if places.is_remote(source):
        start = len(places.join(source, ""))
        paths = [
            path
            for path in places.matching(source, "**")
            if _suffix(path) in SUFFIXES
            and not is_hidden(path[start:])
            and not matches(path[start:], exclude)
        ]
        names = [path[start:] for path in paths]
    else:
        source = Path(source).expanduser()
        if source.suffix in SEPARATORS:
            names = [portable(name) for name in list_captions(source, column)]
            return [printable(name) for name in names], [str(source.parent / n) for n in names]
        folder = existing_folder(source, "folder of images, or CSV or TSV file")
        found, _ = pictures_in(folder, exclude)
        names = [path.relative_to(folder).as_posix() for path in found]
        paths = [str(path) for path in found]
    if not paths:
        raise InputError(f"{source}: holds no image ({', '.join(SUFFIXES)})")
    return [printable(name) for name in names], paths


def left_out(source: Any, exclude: Sequence[str] = ()) -> dict[str, int]:
    """How many files of a folder are not indexed, by suffix, `"hidden"` or `"excluded"`.

    Args:
        source, exclude: as of `list_images`; a table and an object store leave out nothing.
    """
    if places.is_remote(source) or not Path(source).expanduser().is_dir():
        return {}
    return pictures_in(Path(source).expanduser(), exclude)[1]


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
