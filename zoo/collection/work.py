"""What a source holds, and its pieces of work: one for each shard, the same on any machine."""

import dataclasses
import glob
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zoo.collection import containers, places
from zoo.errors import InputError
from zoo.files.decoding import SUFFIXES
from zoo.files.folders import is_hidden, matches, pictures_in, printable
from zoo.files.tables import SEPARATORS, read_table
from zoo.files.text_files import existing_folder, portable, read_lines
from zoo.files.vector_files import read_vectors


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


FILES, TEXTS, ROWS, CONTAINER = "files", "texts", "rows", "container"


@dataclasses.dataclass(frozen=True)
class Work:
    """The items of one shard, small enough to be sent to a worker.

    ```python
    zoo.collection.Work(0, "files", ("a.jpg",), ("photos/a.jpg",)).count  # 1
    ```

    Attributes:
        number: of the shard.
        kind: `"files"` to read, `"texts"`, `"rows"` of a file of vectors, or a `"container"`.
        names: of the items; a container has its own.
        items: paths, texts, or the first and the last row + 1.
        path: of the file of vectors or of the container.
        column, names_column: see `containers.read`.
    """

    number: int
    kind: str
    names: tuple[str, ...] = ()
    items: tuple = ()
    path: str | None = None
    column: str | None = None
    names_column: str | None = None

    @property
    def count(self) -> int | None:
        """How many items it is, None where only reading tells."""
        if self.kind == CONTAINER:
            return None
        return self.items[1] - self.items[0] if self.kind == ROWS else len(self.items)


def of_items(
    kind: str, names: Sequence[str], items: Sequence, shard_size: int = 4096
) -> list[Work]:
    """Work on files or texts that are listed already.

    Args:
        kind: `"files"` or `"texts"`.
        names: what to call them.
        items: paths or texts.
        shard_size: items a shard.
    """
    return [
        Work(
            number,
            kind,
            tuple(map(str, names[start : start + shard_size])),
            tuple(map(str, items[start : start + shard_size])),
        )
        for number, start in enumerate(range(0, len(items), shard_size))
    ]


def plan(
    source: Any,
    side: str,
    shard_size: int = 4096,
    column: str | None = None,
    names_column: str | None = None,
    of_vectors: bool = False,
    names: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
) -> list[Work]:
    """The work of encoding a source.

    Args:
        source: a folder of pictures, a CSV or TSV file, a text file of captions, a file of vectors;
            a `.tar`, `.tfrecord` or `.parquet` file, a folder of such files, or a pattern of
            their names, `"gs://bucket/photos-*.tar"`. Each such file becomes one shard.
        side: `"images"` or `"captions"`.
        shard_size: items a shard, of everything else.
        column: of a table or a container, see `containers.read`.
        names_column: likewise.
        of_vectors: whether the source is a file of vectors, see `zoo.files.vector_files`.
        names: what to call the rows of a file of vectors; None for their numbers.
        exclude: patterns of files to leave out of a folder of pictures, see `list_images`.

    Raises:
        InputError: if it holds nothing, or there are more or fewer names than vectors.
    """
    if of_vectors:
        total = len(read_vectors(source, side))
        if names is None:
            names = [f"{side[:-1]} {row}" for row in range(total)]
        if len(names) != total:
            raise InputError(f"{source}: expected {total:,} names, found {len(names):,}")
        return [
            dataclasses.replace(work, items=(start, start + len(work.names)), path=str(source))
            for work in of_items(ROWS, names, names, shard_size)
            for start in [work.number * shard_size]
        ]
    if names is not None:
        raise InputError("--names is of the items of a file of vectors, and this model reads none")
    if exclude and (of_vectors or side != "images" or Path(str(source)).suffix in SEPARATORS):
        raise InputError(f"--exclude is of a folder of pictures; received the source {source}")
    found = _containers(source)
    if found:
        work = dict(kind=CONTAINER, column=column, names_column=names_column)
        return [Work(number, path=path, **work) for number, path in enumerate(found)]
    if names_column is not None:
        raise InputError(f"{source}: names can be chosen of tar, TFRecord and Parquet files only")
    if side == "captions":
        texts = list_captions(source, column or "caption")
        return of_items(TEXTS, list(map(printable, texts)), texts, shard_size)
    names, paths = list_images(source, column or "image", exclude)
    return of_items(FILES, names, paths, shard_size)


def read(work: Work, side: str) -> Iterator[tuple[str, Any, str | None]]:
    """The items of work, no rows: `(name, contents, None)`, or `(name, None, why not)`."""
    if work.kind == CONTAINER:
        yield from containers.read(work.path, side, work.column, work.names_column)
    for name, item in zip(work.names, work.items, strict=True):
        if work.kind == TEXTS:
            yield name, item, None
            continue
        try:
            yield name, places.read_bytes(item), None
        except InputError as error:
            yield name, None, str(error).removeprefix(f"{item}: ")


def digest(pieces: Sequence[Work]) -> str:
    """SHA-256 of all that is to be encoded, by its names."""
    whole = hashlib.sha256()
    for work in pieces:
        whole.update(json.dumps(dataclasses.astuple(work)).encode())
    return whole.hexdigest()


def _containers(source):
    text = str(source)
    if "*" in text:
        if places.is_remote(text):
            folder, _, pattern = text.rpartition("/")
            found = places.matching(folder, pattern)
        else:
            found = sorted(glob.glob(str(Path(text).expanduser())))
        found = [path for path in found if containers.kind_of(path)]
        if not found:
            raise InputError(f"{source}: no file of this pattern is a {_kinds()} file")
        return found
    if containers.kind_of(text):
        return [text]
    path = Path(text).expanduser()
    if places.is_remote(text) or (path.is_dir() and path.suffix not in SEPARATORS):
        return [path for path in places.matching(source, "*") if containers.kind_of(path)]
    return []


def _kinds():
    return ", ".join(containers.KINDS)
