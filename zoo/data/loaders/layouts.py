"""The layouts in which people have photos with captions, each recognised by its files."""

import ast
import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from halo_search.errors import InputError
from halo_search.files.folders import is_hidden, pictures_in
from halo_search.files.json_files import read_json
from halo_search.files.tables import SEPARATORS, read_header, read_table
from halo_search.files.text_files import lines_of, name_on_disk, portable, read_lines, read_text
from zoo.data.loaders.coco import coco_records
from zoo.data.loaders.gather import is_karpathy, karpathy_records
from zoo.data.records import Problems

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
    """Yields the rows of a CSV or TSV table; broken ones are problems."""

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
    """Yields the rows of a JSONL file; broken lines are problems."""

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
    """Yields a row if it names an image and, with `has_split`, a known split; else it is a
    problem."""
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
            values = ast.literal_eval(text.strip())
            if values and all(isinstance(value, str) for value in values):
                return list(values)
    return [text]


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


TABLES = ("pairs.csv", "pairs.tsv", "pairs.jsonl")
LAYOUTS = (
    "pairs.csv, pairs.tsv or pairs.jsonl; metadata.csv or .jsonl (imagefolder); captions.txt "
    "(Kaggle's Flickr8k); dataset_*.json (Karpathy); captions_*.json (COCO); or a text file beside "
    "each picture (beach.jpg and beach.txt)"
)
_METADATA = ("metadata.csv", "metadata.jsonl")
_JSON = re.compile(r"(dataset|captions)\w*\.json(\.gz)?")
_SPLIT_FOLDERS = ("train", "validation", "valid", "val", "dev", "test")
_DEEP, _SAMPLE = 2, 20  # folders below the table's; names that are looked for in each


class Layout(NamedTuple):
    """A recognised folder: `what` in words, the `source` of the captions, the folder `images` of
    the paths, and `rows`, a function of `Problems` to an iterator of `Row`s."""

    what: str
    source: Path
    images: Path
    rows: Callable[[Problems], Iterator[Row]]


def recognised(path, images=None, columns=("image", "caption"), separator=None):
    """The layout of a folder, or of a table in it; `images` None finds the folder of the first
    pictures. Raises InputError if there is nothing at `path`, or it has none of these layouts."""
    path = Path(path).expanduser()
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    images = None if images is None else Path(images).expanduser()
    if images is not None and not images.is_dir():
        raise InputError(f"{images}: no such folder of images")
    source = _source(path) if path.is_dir() else path
    what, rows = _reader(source, path, columns, separator)
    folder = images or _photo_folder(source, path, rows)
    return Layout(what, source, folder, lambda problems: rows(problems, folder))


def _source(folder):
    """The file in a folder, or one folder below, that holds the captions; else the folder."""
    for name in (*TABLES, *_METADATA):
        if (folder / name).is_file():
            return folder / name
    if _metadata_of_splits(folder):
        return folder
    for known in ("captions.txt", _JSON):
        for place in (folder, *_folders(folder, 1)):
            sources = sorted(
                file
                for file in place.iterdir()
                if (known == file.name if isinstance(known, str) else known.fullmatch(file.name))
                and file.is_file()
            )
            if sources:
                return sources[0]
    return folder


def _reader(source: Path, root: Path, columns: tuple[str, str], separator: Any):
    """`(layout in words, function (problems, folder of images) -> rows)`."""
    name, wanted = source.name, (*columns, "split")
    if source.is_dir():
        if tables := _metadata_of_splits(source):
            return "imagefolder", lambda problems, _: _of_splits(tables, source, columns, problems)
        if not any(path.with_suffix(".txt").is_file() for path in pictures_in(source)[0]):
            raise InputError(f"{source}: expected {LAYOUTS}; found none")
        return "a text file beside each picture", lambda problems, _: read_rows(
            source, wanted, problems
        )
    if ".json" in source.suffixes:
        return _json_reader(source, root)
    kind = {"captions.txt": "Kaggle's Flickr8k"}.get(name, "a table")
    kind = "imagefolder" if name in _METADATA else kind
    if source.suffix == ".txt":
        separator = separator or SEPARATORS[".csv"]
    return kind, lambda problems, _: read_rows(source, wanted, problems, separator)


def _json_reader(source: Path, root: Path):
    """As `_reader`, for a file of Karpathy's or COCO's."""
    content = read_json(source)

    def karpathy(problems, folder):
        records = karpathy_records(source, content, None, problems, "filename")
        return _rows_of(records, folder, problems)

    def coco(problems, folder):
        return _rows_of(_coco(root, source, content, problems), folder, problems)

    if is_karpathy(content):
        return "Karpathy's JSON", karpathy
    return "COCO's captions", coco


def _metadata_of_splits(folder):
    """`imagefolder`'s tables of splits: `{folder of the split: its table}`."""
    tables = {}
    for split in _SPLIT_FOLDERS:
        for name in _METADATA:
            if (folder / split / name).is_file():
                tables.setdefault(split, folder / split / name)
    return tables


def _of_splits(tables, root, columns, problems):
    """Yields the rows of an imagefolder's tables, one table per split."""
    for split, table in tables.items():
        for row in read_rows(table, (*columns, "split"), problems):
            image = f"{split}/{row.image}"
            yield row._replace(image=image, split=split_of(split, table, problems))


def _coco(root, source, content, problems):
    """The records of all of COCO's files that lie beside this one."""
    files = [source]
    if root.is_dir():
        files = sorted(file for file in source.parent.iterdir() if _JSON.fullmatch(file.name))
    contents = [(file, content if file == source else read_json(file)) for file in files]
    several = len(contents) > 1
    for file, file_content in contents:
        split = re.search(r"train|val|test", file.name)
        for record in coco_records([(file, file_content)], problems):
            if record.captions:
                yield record._replace(split=split[0] if split and several else None)


def _rows_of(records, folder, problems):
    """Yields records as rows, with the first of their file names that exists."""
    for record in records:
        there = (name for name in record.files if os.path.isfile(folder / name))
        known = record.split and split_of(record.split, record.where, problems)
        yield Row(record.where, next(there, record.files[0]), record.captions, known)


def _photo_folder(source, root, rows):
    """The folder in which the first pictures lie; the table's own where none has them."""
    first = source if source.is_dir() else source.parent
    tops = dict.fromkeys([first, *([root] if root.is_dir() else [])])
    sample = [row.image for row in islice(rows(Problems(skip_bad=True), first), 5 * _SAMPLE)]
    names = list(dict.fromkeys(sample))[:_SAMPLE]
    best, most = first, 0
    for folder in (*tops, *(below for top in tops for below in _folders(top, _DEEP))):
        count = sum(os.path.isfile(folder / name_on_disk(folder, name)) for name in names)
        if count > most:
            best, most = folder, count
        if most == len(names):
            break
    return best


def _folders(folder, depth):
    """The subfolders down to a depth, in breadth-first order."""
    if not depth:
        return
    with os.scandir(folder) as entries:
        inner = sorted(
            entry.name for entry in entries if entry.is_dir() and not is_hidden(entry.name)
        )
    yield from (folder / name for name in inner)
    for name in inner:
        yield from _folders(folder / name, depth - 1)
