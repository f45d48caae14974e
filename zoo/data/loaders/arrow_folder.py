"""Folders of Hugging Face's `datasets` on the disk, read by Arrow alone."""

import hashlib
import os
from pathlib import Path

from zoo.data.loaders.own_rows import OTHER_NAMES, Row, split_of
from zoo.errors import InputError, require
from zoo.files.environment import cache_folder
from zoo.files.json_files import read_json
from zoo.files.text_files import safe_relative

_INFO, _STATE, _SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"
_SUFFIXES = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"GI": ".gif", b"BM": ".bmp", b"RI": ".webp"}


def is_datasets_folder(path):
    """Whether a folder is what `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote."""
    return (path / _SPLITS).is_file() or ((path / _INFO).is_file() and (path / _STATE).is_file())


def read_rows(folder, columns, problems):
    """An iterator of the `Row`s of a `datasets` folder, of one data set or of a dictionary of
    splits.

    Pictures are bytes inside of the Arrow files; they become files in `pictures_folder`, to which
    the rows' paths are relative. Each has the time of change of the file that it is out of: where
    that is another, the contents are compared. A column `captions`, `text` or `sentences`, of text
    or lists of text, stands in for `caption`.

    Raises:
        InputError: if a file is damaged or a column is not there.
    """
    folder = Path(folder)
    names = [None]
    if (folder / _SPLITS).is_file():
        names = _names(folder / _SPLITS, "splits")
    return _rows(folder, names, columns, pictures_folder(folder), problems)


def pictures_folder(folder):
    """The folder below the user's cache that the pictures of a `datasets` folder are written to."""
    key = hashlib.sha256(str(Path(folder).resolve()).encode()).hexdigest()[:16]
    return cache_folder("datasets") / key


def _rows(folder, names, columns, images, problems):
    for name in names:
        part = folder if name is None else folder / name
        split = None if name is None else split_of(name, part, problems)
        if name is not None and split is None:
            continue
        number = 0
        for file in _names(part / _STATE, "_data_files", "filename"):
            path = part / file
            for picture, captions in _read_arrow(path, columns):
                where = f"{path}: row {number}"
                split_name = name or "all"
                written = _write(images, split_name, number, picture, path, where, problems)
                number += 1
                if written is not None:
                    captions = captions if isinstance(captions, list) else [captions]
                    yield Row(where, written, captions, split)


def _read_arrow(path, columns):
    arrow = require("pyarrow", "datasets")
    try:
        with arrow.memory_map(str(path)) as source, arrow.ipc.open_stream(source) as reader:
            image, caption = (_column(path, reader.schema.names, name) for name in columns)
            for batch in reader:
                batch.validate(full=True)  # offsets that lead out of a damaged file end the process
                pictures, texts = batch.column(image), batch.column(caption)
                yield from ((pictures[i].as_py(), texts[i].as_py()) for i in range(len(pictures)))
    except (arrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a whole Arrow file ({error})") from error


def _column(path, names, wanted):
    for name in (wanted, *OTHER_NAMES.get(wanted, ())):
        if name in names:
            return name
    raise InputError(f"{path}: expected a column {wanted!r}, found {', '.join(names)}")


def _write(images, split, number, picture, source, where, problems):
    """The path of a picture's file, relative to `images`, or None where there is no picture."""
    data = picture.get("bytes") if isinstance(picture, dict) else None
    if data is None and isinstance(picture, dict) and picture.get("path"):
        source = Path(picture["path"])
        data = source.read_bytes() if source.is_file() else None
    if data is None:
        problems.bad("rows without image", where, "expected the bytes of a picture")
        return None
    name = f"{split}/{number:08d}{_SUFFIXES.get(bytes(data[:2]), '.img')}"
    path = images / name
    try:
        changed = source.stat().st_mtime_ns
        found = path.stat() if path.exists() else None
        if found is None or (found.st_size, found.st_mtime_ns) != (len(data), changed):
            if found is None or found.st_size != len(data) or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            os.utime(path, ns=(changed, changed))  # at last: a part of it has another time
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    return name


def _names(path, key, inner=None):
    """The names of files or folders, beside `path`, that a JSON file lists."""
    try:
        names = [entry[inner] if inner else entry for entry in read_json(path)[key]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not the JSON of a datasets folder ({error!r})") from error
    for name in names:
        if not isinstance(name, str) or not safe_relative(name):
            raise InputError(f"{path}: expected the names of files of this folder, found {name!r}")
    return names
