"""What a cluster encodes: items of a folder, a pattern, a table or an object store, and tars."""

import contextlib
import fnmatch
import glob
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from halo_search.collection.sources import PICTURES, Items, captions, pictures, read_source
from halo_search.collection.sources import stamp_of as stamp_here
from halo_search.errors import InputError
from halo_search.files.decoding import SUFFIXES
from halo_search.files.folders import HIDDEN, is_hidden, no_image, pictures_in, printable
from halo_search.files.stores import StoredFile, file_at, files_below, is_remote, open_file, plain
from halo_search.files.tables import SEPARATORS

TAR = ".tar"
_TEXT = ".txt"
_SIGNS = "*?["


class Tar(NamedTuple):
    """A tar of pictures or texts, which is encoded into a part of its own."""

    name: str
    path: str
    stamp: str


def read_listing(
    source: Any,
    side: str = "images",
    column: str | None = None,
    names: Sequence[str] | None = None,
    of_vectors: bool = False,
) -> tuple[Items, list[Tar]]:
    """The items and the tars of a source here or in an object store.

    Args:
        source: as of `read_source`; or a tar, a folder with tars, a pattern such as
            `photos-*.tar`, or any of these in an object store, which is not one of vectors.
        side, column, names, of_vectors: as of `read_source`.

    Raises:
        InputError: if the source holds nothing, or cannot be read.
    """
    text = plain(source)
    is_table = PurePosixPath(text).suffix in (*SEPARATORS, _TEXT)
    if is_remote(text):
        if of_vectors:
            raise InputError(f"{text}: expected a file of vectors on a disk that all nodes share")
        return (_stored_table(text, side, column), []) if is_table else _stored_files(text, side)
    is_pattern = any(sign in text for sign in _SIGNS) and not os.path.exists(text)
    if is_pattern or text.endswith(TAR):
        paths = sorted(glob.glob(text, recursive=True)) if is_pattern else [text]
        files = [_file_here(path) for path in paths if not os.path.isdir(path)]
        return _sorted_out(text, files, _start_of(text), side)
    if of_vectors or is_table or not os.path.isdir(text):
        return read_source(text, side, column, names, of_vectors), []
    return _folder_here(text, side)


def _folder_here(folder, side):
    """A folder of this machine, whose pictures `read_source` would list, and its tars."""
    paths, others = pictures_in(folder)
    tars = [name for name, why in others if why == TAR]
    if not tars:
        return read_source(folder, side), []
    rest = [(name, why) for name, why in others if why != TAR]
    if side == "captions":  # of pictures in tars' neighbourhood
        rest += [(path.relative_to(folder).as_posix(), path.suffix.lower()) for path in paths]
        paths = []
    names = [path.relative_to(folder).as_posix() for path in paths]
    items = _items(names, list(map(str, paths)), list(map(stamp_here, paths)), sorted(rest))
    return items, [Tar(name, f"{folder}/{name}", stamp_here(f"{folder}/{name}")) for name in tars]


def _stored_files(source, side):
    """The files of a folder or a pattern of an object store."""
    if any(sign in source for sign in _SIGNS):
        start = _start_of(source)
        files = [file for file in files_below(source[:start]) if _matches(file.path, source)]
    elif source.endswith(TAR):
        start = _start_of(source)
        files = [file] if (file := file_at(source)) else []
    else:
        start, files = len(source) + 1, list(files_below(source))
    return _sorted_out(source, files, start, side)


def _sorted_out(source, files: Iterable[StoredFile], start, side):
    """Pictures, tars and other files; names begin at `start` of a path."""
    chosen, tars, others = [], [], []
    for file in sorted(files):
        name, suffix = file.path[start:], PurePosixPath(file.path).suffix.lower()
        if is_hidden(name):
            others.append((printable(name), HIDDEN))
        elif suffix == TAR:
            tars.append(Tar(printable(name), file.path, file.stamp))
        elif suffix in SUFFIXES and side == "images":
            chosen.append(file)
        else:
            others.append((printable(name), printable(suffix) or "no suffix"))
    if not chosen and not tars:
        expected = "" if side == "captions" else f"; {no_image(source, others)}"
        raise InputError(f"{source}: holds no tar{expected}")
    names = [file.path[start:] for file in chosen]
    paths, stamps = [file.path for file in chosen], [file.stamp for file in chosen]
    return _items(names, paths, stamps, others), tars


def _items(names, paths, stamps, others):
    """Pictures as `Items` with printable names."""
    return Items(PICTURES, list(map(printable, names)), paths, stamps, others=others)


def _stored_table(source, side, column):
    """The items of a table in an object store; its pictures' paths are relative to its folder."""
    with open_file(source) as file, tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / PurePosixPath(source).name
        copy.write_bytes(file.read())
        try:
            items = (
                captions(copy, column or "caption")
                if side == "captions"
                else pictures(copy, column or "image")
            )
        except InputError as error:
            raise InputError(str(error).replace(str(copy), source)) from error
    if side == "captions":
        return items
    root = source.rpartition("/")[0]
    paths = [name if "://" in name else f"{root}/{name}" for name in items.names]
    files = {file.path: file for file in files_below(root)}
    stamps = [files[path].stamp if path in files else "" for path in paths]
    return Items(PICTURES, items.names, paths, stamps)


def _file_here(path):
    """A file of this machine as a `StoredFile`; of size and time 0 where it is gone."""
    facts = None
    with contextlib.suppress(OSError):
        facts = os.stat(path)
    return StoredFile(path, facts.st_size if facts else 0, facts.st_mtime_ns if facts else 0)


def _start_of(pattern):
    """Where the names of a pattern's files begin: behind the last folder without a sign."""
    first = min((pattern.find(sign) for sign in _SIGNS if sign in pattern), default=len(pattern))
    return pattern.rfind("/", 0, first) + 1


def _matches(path, pattern):
    """Whether a path fits a pattern in which `*` stays in a folder and `**` does not."""
    parts, wanted = path.split("/"), pattern.split("/")
    return _parts_match(parts, wanted)


def _parts_match(parts, wanted):
    """Whether folders and name fit patterns one by one; `**` stands for any number of folders."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_parts_match(parts[n:], wanted[1:]) for n in range(len(parts) + 1))
    if not parts:
        return False
    return fnmatch.fnmatchcase(parts[0], wanted[0]) and _parts_match(parts[1:], wanted[1:])
