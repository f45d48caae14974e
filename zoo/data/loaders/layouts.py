"""The layouts in which people have photos with captions, each recognised by its files."""

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from zoo.data.loaders.coco import coco_records
from zoo.data.loaders.gather import is_karpathy, karpathy_entries
from zoo.data.loaders.own_rows import Row, has_text_files, read_rows, split_of
from zoo.data.records import Problems
from zoo.errors import InputError
from zoo.files.folders import is_hidden
from zoo.files.json_files import read_json
from zoo.files.tables import SEPARATORS
from zoo.files.text_files import name_on_disk

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


def recognised(
    path: str | os.PathLike,
    images: str | os.PathLike | None = None,
    columns: tuple[str, str] = ("image", "caption"),
    separator: str | None = None,
) -> Layout:
    """The layout of a folder, or of a table in it; `images` None finds the folder of the first
    pictures. Raises InputError if there is nothing at `path`, or it has none of these layouts."""
    path = Path(path).expanduser()
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    images = None if images is None else _existing(images)
    source = _source(path) if path.is_dir() else path
    what, rows = _reader(source, path, columns, separator)
    folder = images or _photo_folder(source, path, rows)
    return Layout(what, source, folder, lambda told: rows(told, folder))


def other_tables(path: Path) -> list[Path]:
    """Tables of `TABLES` in a folder beside the one that is read."""
    found = [path / name for name in TABLES if (path / name).exists()] if path.is_dir() else []
    return found[1:]


def _existing(images):
    folder = Path(images).expanduser()
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of images")
    return folder


def _source(folder):
    """The file in a folder, or one folder below, that holds the captions; else the folder."""
    for name in (*TABLES, *_METADATA):
        if (folder / name).is_file():
            return folder / name
    if _metadata_of_splits(folder):
        return folder
    for known in ("captions.txt", _JSON):
        for place in (folder, *_folders(folder, 1)):
            found = sorted(
                file
                for file in place.iterdir()
                if (known == file.name if isinstance(known, str) else known.fullmatch(file.name))
                and file.is_file()
            )
            if found:
                return found[0]
    return folder


def _reader(source: Path, root: Path, columns: tuple[str, str], separator: Any):
    """`(layout in words, function (problems, folder of images) -> rows)`."""
    name, wanted = source.name, (*columns, "split")
    if source.is_dir():
        if tables := _metadata_of_splits(source):
            return "imagefolder", lambda told, _: _of_splits(tables, source, columns, told)
        if not has_text_files(source):
            raise InputError(f"{source}: expected {LAYOUTS}; found none")
        return "a text file beside each picture", lambda told, _: read_rows(source, wanted, told)
    if ".json" in source.suffixes:
        content = read_json(source)
        if is_karpathy(content):
            entries = lambda told: karpathy_entries(source, content, told, "filename")  # noqa: E731
            return "Karpathy's JSON", lambda told, folder: _rows_of(entries(told), folder, told)
        rows = lambda told: _coco(root, source, content, told)  # noqa: E731
        return "COCO's captions", lambda told, folder: _rows_of(rows(told), folder, told)
    kind = {"captions.txt": "Kaggle's Flickr8k"}.get(name, "a table")
    kind = "imagefolder" if name in _METADATA else kind
    if source.suffix == ".txt":
        separator = separator or SEPARATORS[".csv"]
    return kind, lambda told, _: read_rows(source, wanted, told, separator)


def _metadata_of_splits(folder):
    """`imagefolder`'s tables of splits: `{folder of the split: its table}`."""
    found = {}
    for split in _SPLIT_FOLDERS:
        for name in _METADATA:
            if (folder / split / name).is_file():
                found.setdefault(split, folder / split / name)
    return found


def _of_splits(tables, root, columns, problems):
    for split, table in tables.items():
        for row in read_rows(table, (*columns, "split"), problems):
            image = f"{split}/{row.image}"
            yield row._replace(image=image, split=split_of(split, table, problems))


def _coco(root, source, content, problems):
    """The records of all of COCO's files that lie beside this one, with the split of each."""
    files = [source]
    if root.is_dir():
        files = sorted(file for file in source.parent.iterdir() if _JSON.fullmatch(file.name))
    contents = [(file, content if file == source else read_json(file)) for file in files]
    several = len(contents) > 1
    for file, one in contents:
        split = re.search(r"train|val|test", file.name)
        for record in coco_records([(file, one)], problems):
            if record.captions:
                yield record, split[0] if split and several else None


def _rows_of(entries, folder, problems):
    for record, split in entries:
        there = (name for name in record.files if os.path.isfile(folder / name))
        known = None if split is None else split_of(split, record.where, problems)
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
    """Folders below, those of a depth before deeper ones."""
    if not depth:
        return
    with os.scandir(folder) as entries:
        inner = sorted(one.name for one in entries if one.is_dir() and not is_hidden(one.name))
    yield from (folder / name for name in inner)
    for name in inner:
        yield from _folders(folder / name, depth - 1)
