"""Pictures and captions of one's own, row by row: tables, JSON Lines, a text file a picture."""

import ast
import contextlib
import json
from collections.abc import Iterator
from typing import NamedTuple

from zoo.errors import InputError
from zoo.files.folders import is_hidden, pictures_in
from zoo.files.tables import SEPARATORS, read_header, read_table
from zoo.files.text_files import lines_of, portable, read_lines, read_text

JSON_LINES = (".jsonl", ".ndjson")
# What stands in for a column that is called `image` or `caption`.
OTHER_NAMES = {
    "image": ("file_name", "filename", "image_name"),
    "caption": ("captions", "text", "comment", "sentences"),
}
_SPLITS = {
    "train": "train",
    "restval": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}


class Row(NamedTuple):
    """One row: `where` it is, a picture's path below their folder, captions not checked yet, and
    the split or None."""

    where: str
    image: str
    captions: list
    split: str | None = None


def read_rows(source, columns, problems, separator=None) -> Iterator[Row]:
    """The rows of a table, of JSON Lines, or of a folder with a text file a picture. Raises
    InputError if the source is of no such kind, or as `problems` decides."""
    if source.is_dir():
        return _text_files(source, problems)
    if source.suffix in SEPARATORS or separator is not None:
        return _table(source, columns, problems, separator)
    if source.suffix in JSON_LINES:
        return _json_lines(source, columns, problems)
    kinds = ", ".join((*SEPARATORS, *JSON_LINES))
    raise InputError(f"{source}: expected a file of one of the kinds {kinds}")


def split_of(name, where, problems):
    """A split by one of its usual names; None, reported to `problems`, for any other name."""
    known = _SPLITS.get(name.strip().lower()) if isinstance(name, str) else None
    if known is None:
        names = ", ".join(_SPLITS)
        problems.bad("unknown splits", where, f"expected a split of {names}; found {name!r}")
    return known


def _table(table, columns, problems, separator):
    def bad(where, why):
        kind = "rows with too many fields" if " fields, found " in why else "broken rows"
        problems.bad(kind, where, why)

    header, split = read_header(table, separator), columns[-1]
    image, caption = (_named(name, header) for name in columns[:2])
    has_splits = split in header
    wanted = [image, caption, split] if has_splits else [image, caption]
    for line, values in read_table(table, wanted, bad, separator):
        yield from _row(f"{table}:{line}", image, values, has_splits, problems)


def _json_lines(table, columns, problems):
    def bad(where, why):
        problems.bad("bad lines", where, why)

    for line, text in enumerate(lines_of(read_text(table, bad)), start=1):
        if not text.strip():
            continue
        where = f"{table}:{line}"
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
            bad(where, f"not JSON ({getattr(error, 'msg', error)})")
            continue
        if isinstance(row, dict):
            image, caption = (_named(name, row) for name in columns[:2])
        if not isinstance(row, dict) or not all(key in row for key in (image, caption)):
            problems.bad("bad lines", where, f"expected an object with {columns[:2]}")
            continue
        values = [row[image], row[caption], row.get(columns[-1])]
        yield from _row(where, image, values, columns[-1] in row, problems)


def _named(name, there):
    """The name of a column, or the usual other one that is there in its place."""
    others = () if name in there else OTHER_NAMES.get(name, ())
    return next((other for other in others if other in there), name)


def _row(where, column, values, has_split, problems):
    image, captions, *split = values
    if not isinstance(image, str) or not image.strip():
        problems.bad("rows without image", where, f"expected a path as {column!r}")
        return
    known = split_of(split[0], where, problems) if has_split else None
    if has_split and known is None:
        return
    captions = captions if isinstance(captions, list) else _listed(captions)
    yield Row(where, portable(image.strip()), captions, known)


def _listed(text):
    """The captions of a cell: several are a list as Python or JSON writes it."""
    if isinstance(text, str) and text.strip().startswith("[") and text.strip().endswith("]"):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found = ast.literal_eval(text.strip())
            if found and all(isinstance(one, str) for one in found):
                return list(found)
    return [text]


def has_text_files(folder):
    """Whether a folder has a text file beside one of its pictures."""
    pictures, _ = pictures_in(folder)
    return any(path.with_suffix(".txt").is_file() for path in pictures)


def _text_files(folder, problems):
    """`beach.jpg` beside `beach.txt`, whose lines are its captions; empty lines are left out."""
    pictures, _ = pictures_in(folder)
    texts = {
        path.with_suffix("")
        for path in folder.rglob("*.txt")
        if not is_hidden(path.relative_to(folder).as_posix())
    }
    for path in pictures:
        text = path.with_suffix(".txt")
        if path.with_suffix("") not in texts:
            problems.missing("photos without a text file", path)
            continue
        captions = [line for line in read_lines(text) if line.strip()]
        yield Row(str(text), path.relative_to(folder).as_posix(), captions or [""])
    for stem in sorted(texts - {path.with_suffix("") for path in pictures}):
        problems.missing("text files without a photo", stem.with_suffix(".txt"))
