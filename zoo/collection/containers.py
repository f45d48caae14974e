"""Files that hold many items: tar archives as WebDataset's, TFRecord and Parquet."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import tensorflow as tf

from zoo.collection import places
from zoo.errors import InputError, require
from zoo.files.decoding import SUFFIXES as PICTURES
from zoo.files.folders import is_hidden, printable

TAR, TFRECORD, PARQUET = ".tar", ".tfrecord", ".parquet"
KINDS = (TAR, TFRECORD, PARQUET)
_ROWS = 256  # of a Parquet file at once
Items = Iterator[tuple[str, Any, str | None]]


def kind_of(path: Any) -> str | None:
    """The kind of a container by its name, `"photos-0001.tfrecord-00000-of-00004"` too."""
    name = PurePosixPath(str(path)).name
    return next((kind for kind in KINDS if name.endswith(kind) or f"{kind}-" in name), None)


def read(path: Any, side: str, column: str | None = None, names: str | None = None) -> Items:
    """The items of a container, one after the other.

    Args:
        path: a file, here or in an object store.
        side: `"images"` or `"captions"`.
        column: the column of Parquet, or the feature of TFRecord's `tf.train.Example`, with the
            bytes of a picture or the text; default `"image"` or `"caption"`. A tar has pictures by
            their suffix, or texts that end with `.txt`.
        names: the column or feature with the items' names; default: the file and the number of
            the row. A tar's are those of its members.

    Yields:
        `(name, contents, None)`, bytes or a text; or `(name, None, reason)` of what cannot be
        used. A file that ends too early gives what it holds, and then such a reason.

    Raises:
        InputError: if it cannot be opened, or has no such column.
    """
    column = column or ("image" if side == "images" else "caption")
    kind = kind_of(path)
    reader = {TAR: _tar, TFRECORD: _tfrecord, PARQUET: _parquet}[kind]
    for name, contents, reason in reader(path, side, column, names):
        if reason is None and side == "captions":
            contents, reason = _text(contents)
        yield printable(name), contents, reason


def _tar(path, side, column, names):
    wanted = PICTURES if side == "images" else (".txt",)
    count = 0
    with places.open_file(path) as opened:
        file = _Remembered(opened)
        try:
            with tarfile.open(fileobj=file, mode="r|") as archive:
                for member in archive:
                    known = PurePosixPath(member.name).suffix.lower() in wanted
                    if member.isfile() and known and not is_hidden(_inside(member.name)):
                        contents = archive.extractfile(member).read()
                        count += 1
                        yield member.name, contents, None
            if file.end() != bytes(len(file.end())):
                raise EOFError("it has no end")  # `tarfile` stops at half a header as at the end
        except (tarfile.TarError, EOFError, OSError) as error:
            yield str(path), None, f"a damaged archive behind {count} items: {error}"


class _Remembered:
    """A file that knows its last block: an archive ends with zeros."""

    def __init__(self, file):
        self._file, self._last = file, b"\1"

    def read(self, size):
        data = self._file.read(size)
        self._last = (self._last + data)[-tarfile.BLOCKSIZE :]
        return data

    def end(self):
        while self.read(tarfile.RECORDSIZE):
            pass
        return self._last


def _tfrecord(path, side, column, names):
    row = 0
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            features = tf.train.Example.FromString(record).features.feature
            for key in (column, names):
                if key is not None and key not in features:
                    raise InputError(
                        f"{path}: expected a feature {key!r}, found {', '.join(sorted(features))}"
                    )
            name = f"{_base(path)}#{row}"
            if names is not None:
                name = features[names].bytes_list.value[0].decode("utf-8", "replace")
            values = features[column].bytes_list.value
            row += 1
            yield name, values[0] if values else None, None if values else "an empty feature"
    except tf.errors.NotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except tf.errors.UnimplementedError as error:  # TensorFlow reads these files itself
        raise InputError(f"{path}: TensorFlow cannot read it: {_plain(error)}") from error
    except tf.errors.OpError as error:
        yield str(path), None, f"a damaged file behind {row} items: {_plain(error)}"
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        yield str(path), None, f"a damaged file behind {row} items: {error}"


def _parquet(path, side, column, names):
    parquet = require("pyarrow.parquet", extra="search")
    with places.open_file(path) as opened:
        try:
            file = parquet.ParquetFile(opened, pre_buffer=False)  # and no threads, as of shards
        except (OSError, ValueError) as error:
            yield str(path), None, f"not a Parquet file: {error}"
            return
        for key in (column, names):
            if key is not None and key not in file.schema_arrow.names:
                found = ", ".join(file.schema_arrow.names)
                raise InputError(f"{path}: expected a column {key!r}, found {found}")
        row = 0
        columns = [column] if names is None else [column, names]
        for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False):
            for values in batch.to_pylist():
                name = f"{_base(path)}#{row}" if names is None else str(values[names])
                contents = values[column]
                if isinstance(contents, dict):  # as the `datasets` library keeps pictures
                    contents = contents.get("bytes")
                row += 1
                yield name, contents, "an empty cell" if contents is None else None


def _plain(error):
    """What TensorFlow says, without the names of its nodes."""
    return re.sub(r"\{\{.*?\}\} | \[Op:.*", "", error.message, flags=re.DOTALL)


def _text(contents):
    if isinstance(contents, bytes):
        try:
            contents = contents.decode("utf-8")
        except UnicodeDecodeError as error:
            return None, f"expected UTF-8, found byte {contents[error.start]:#x}"
    if not isinstance(contents, str) or not contents.strip():
        return None, "expected text, found nothing"
    return contents.strip(), None


def _inside(name):
    """A member's name without the `./` that many archives put before it."""
    return name.removeprefix("./")


def _base(path):
    return PurePosixPath(str(path)).name
