"""The two formats of a part: Parquet, which other programs read, and NumPy's `.npz` for the parts
inside of a gallery, which needs no Arrow. Either finds a damaged byte by its checksums."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from halo_search.errors import InputError, require
from halo_search.files.stores import open_file

PARQUET, NPZ = ".parquet", ".npz"
_NOTES = b"halo"  # the key of a Parquet file's own metadata
_TEXTS = "texts_"  # before the names of an .npz file's arrays of bytes: lists of texts as JSON


class Columns(NamedTuple):
    """What a part holds, a row an item."""

    texts: dict[str, list[str]]  # by name, a text an item
    arrays: dict[str, np.ndarray]  # by name, `(items, …)`
    notes: dict[str, Any]  # JSON values about all items


def check_format(suffix: str) -> None:
    """Raises MissingPackageError if parts of this format cannot be written here."""
    if suffix == PARQUET:
        _arrow()


def write_columns(file: Any, columns: Columns, suffix: str) -> None:
    """Writes a part of a format to a path or an open file."""
    if suffix == PARQUET:
        _write_parquet(file, columns)
    elif hasattr(file, "write"):
        _write_npz(file, columns)
    else:
        with open(file, "wb") as opened:
            _write_npz(opened, columns)


def read_columns(path: Any, names: Sequence[str] | None = None) -> Columns:
    """A part, by its name's suffix, or some of its columns. Raises InputError if it is none."""
    read = _read_npz if str(path).endswith(NPZ) else _read_parquet
    with _refusing(path), open_file(path) as file:
        return read(file, names)


@contextlib.contextmanager
def _refusing(path) -> Iterator[None]:
    """Turns what a damaged part raises into an InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # Arrow, zipfile and NumPy raise a dozen kinds, of several lines
        reason = " ".join(str(error).split())
        expected = f"not a part of embeddings ({reason}); delete it and encode again"
        raise InputError(f"{path}: {expected}") from error


def _arrow():
    """`(pyarrow, pyarrow.parquet)`. Raises MissingPackageError."""
    return require("pyarrow", extra="arrow"), require("pyarrow.parquet", extra="arrow")


def _write_parquet(file, columns):
    arrow, parquet = _arrow()
    stored = {name: arrow.array(texts, arrow.string()) for name, texts in columns.texts.items()}
    for name, values in columns.arrays.items():
        flat = arrow.array(np.ascontiguousarray(values).reshape(-1))
        width = int(np.prod(values.shape[1:]))
        is_scalar = values.ndim == 1
        stored[name] = flat if is_scalar else arrow.FixedSizeListArray.from_arrays(flat, width)
    shapes = {name: values.shape[1:] for name, values in columns.arrays.items()}
    notes = {_NOTES: json.dumps({**columns.notes, "shapes": shapes})}
    table = arrow.table(stored).replace_schema_metadata(notes)
    # Vectors do not get smaller.
    how = {"compression": {"name": "zstd"}, "use_dictionary": False}
    parquet.write_table(table, file, **how, write_page_checksum=True)


def _read_parquet(file, names):
    arrow, parquet = _arrow()
    # Threads of Arrow that still hold a buffer of Python's abort a process that ends.
    how = {"pre_buffer": False, "page_checksum_verification": True}
    table = parquet.ParquetFile(file, **how).read(columns=names, use_threads=False)
    notes = json.loads(table.schema.metadata[_NOTES])
    shapes, texts, arrays = notes.pop("shapes"), {}, {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if arrow.types.is_string(column.type):
            texts[name] = column.to_pylist()
            continue
        shape = shapes.get(name, ())
        values = (column.flatten() if shape else column).to_numpy(zero_copy_only=False)
        arrays[name] = values.reshape(len(table), *shape)
    return Columns(texts, arrays, notes)


def _write_npz(file, columns):
    texts = {f"{_TEXTS}{name}": _as_bytes(values) for name, values in columns.texts.items()}
    np.savez(file, notes=_as_bytes(columns.notes), **texts, **columns.arrays)


def _read_npz(file, names):
    texts, arrays = {}, {}
    with np.load(file, allow_pickle=False) as stored:
        notes = _of_bytes(stored["notes"])
        for key in stored.files:
            name = key.removeprefix(_TEXTS)
            if key == "notes" or (names is not None and name not in names):
                continue
            if key.startswith(_TEXTS):
                texts[name] = _of_bytes(stored[key])
            else:
                arrays[name] = stored[key]
    return Columns(texts, arrays, notes)


def _as_bytes(values):
    """JSON values as an array of bytes."""
    return np.frombuffer(json.dumps(values).encode(), np.uint8)


def _of_bytes(array):
    """The JSON values of an array of bytes."""
    return json.loads(array.tobytes())
