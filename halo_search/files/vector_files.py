"""Reads arrays of vectors, pairs and names from files that other tools wrote."""

import functools
from pathlib import Path

import numpy as np

from halo_search.errors import InputError, require
from halo_search.files.tables import SEPARATORS, read_table
from halo_search.files.text_files import read_lines

NPY, NPZ, SAFETENSORS, PARQUET = ".npy", ".npz", ".safetensors", ".parquet"
SUFFIXES = (NPY, NPZ, SAFETENSORS, PARQUET)
_NUMBERS = ("F64", "F32", "F16", "I64", "I32", "I16", "I8", "U8", "BOOL")  # NumPy's too
_BLOCK = 1 << 14  # rows that are checked at once


def located(spec, root=None):
    """`(path, name)` of `FILE` or `FILE:NAME`, NAME being an array or a column of the file, which
    may have moved to a folder `root`."""
    text, name = str(spec), None
    if not Path(text).expanduser().exists() and ":" in text:
        head, _, tail = text.rpartition(":")
        if Path(head).suffix:  # not the drive of C:\...
            text, name = head, tail
    path = Path(text).expanduser()
    return (path if root is None else Path(root).expanduser() / path.name), name


def read_vectors(spec, what="vectors", root=None):
    """Finite vectors `(rows, dim)` of `FILE` or `FILE:NAME`: `.npy` (mapped), `.npz`,
    `.safetensors`, `.parquet`. Raises InputError if it is none; a pickle is refused unread."""
    path, name = located(spec, root)
    return _checked_vectors(path, name, what, *_version(path))


def read_column(spec, root=None):
    """One value per row, numbers or texts, of any of the files, a table (`FILE:COLUMN`) or a text
    file (its lines). Raises InputError if it cannot be read."""
    path, name = located(spec, root)
    _version(path)
    if path.suffix in SEPARATORS:
        if name is None:
            raise InputError(f"{path}: expected {path.name}:COLUMN, which names a column")
        return [value or "" for _, (value,) in read_table(path, [name])]
    if path.suffix not in SUFFIXES:
        return read_lines(path)
    values = _array(path, name, None, rank=None)
    if values.dtype.kind in "SU" or values.dtype == object:
        return [str(value) for value in values]
    return np.asarray(values)


@functools.lru_cache(maxsize=8)  # three splits read the same files
def _checked_vectors(path, name, what, *_):
    """The vectors of a file, `(rows, dim)`; an InputError names the first row that is none."""
    array = _array(path, name, what, rank=2)
    where = path if name is None else f"{path}:{name}"
    if array.ndim != 2 or not array.size:
        raise InputError(f"{where}: expected vectors (rows, dim), found shape {array.shape}")
    if array.dtype not in (np.float16, np.float32, np.float64) or not array.dtype.isnative:
        raise InputError(f"{where}: expected float16, float32 or float64, found {array.dtype}")
    for start, block in _blocks(array):
        for bad, expected in (
            (~np.isfinite(block).all(axis=1), "finite numbers, row {} has NaN or infinities"),
            (~block.any(axis=1), "vectors with a direction, row {} is all zeros"),
        ):
            if bad.any():
                raise InputError(
                    f"{where}: expected {expected.format(start + int(np.argmax(bad)))}"
                )
    return array


def _array(path, name, what, rank):
    """An array of a file, by its name or else the only one of `rank`; an InputError if there is
    none."""
    try:
        if path.suffix == NPY:
            if name is not None:
                raise InputError(f"{path}: the one array of .npy has no name; found {name!r}")
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix == NPZ:
            with np.load(path, allow_pickle=False) as stored:
                ranks = {key: None if name else stored[key].ndim for key in stored.files}
                return stored[_chosen(path, name, what, ranks, rank)]
        if path.suffix == PARQUET:
            return _parquet(path, name, what)
        if path.suffix != SAFETENSORS:
            raise InputError(f"{path}: expected one of {', '.join(SUFFIXES)}")
        from safetensors import safe_open

        with safe_open(path, "np") as archive:
            ranks = {key: len(archive.get_slice(key).get_shape()) for key in archive.keys()}  # noqa: SIM118
            chosen = _chosen(path, name, what, ranks, rank)
            if (kind := archive.get_slice(chosen).get_dtype()) not in _NUMBERS:
                raise InputError(
                    f"{path}:{chosen}: expected F16, F32 or F64, found {kind}; convert it with "
                    "tensor.float()"
                )
            return archive.get_tensor(chosen)
    except InputError:
        raise
    except Exception as error:  # damage leads NumPy, Arrow and safetensors to a dozen kinds
        reason = (getattr(error, "strerror", None) or str(error)).split("\n")[0]
        marks = "Object arrays", "Python objects", "pickled"
        if any(mark in reason for mark in marks[: 3 if path.suffix == NPY else 2]):
            reason = "it holds Python objects (a pickle), which are refused unread"
        raise InputError(f"{path}: not a whole {path.suffix} file ({reason})") from error


def _chosen(path, name, what, ranks, rank):
    """The name of the array that is meant."""
    if name is not None:
        if name not in ranks:
            raise InputError(f"{path}: expected {name!r}, found {', '.join(ranks) or 'nothing'}")
        return name
    fitting = [key for key in ranks if rank is None or ranks[key] == rank]
    if what in fitting:
        return what
    if len(fitting) != 1:
        raise InputError(
            f"{path}: expected {path.name}:NAME, which names one of {', '.join(ranks) or 'none'}"
        )
    return fitting[0]


def _parquet(path, name, what):
    """A column of vectors `(rows, dim)`, or of texts."""
    parquet = require("pyarrow.parquet", extra="arrow")
    compute = require("pyarrow.compute", extra="arrow")
    schema = parquet.read_schema(path)
    ranks = {field.name: 2 if field.type.num_fields else 1 for field in schema}
    chosen = _chosen(path, name, what, ranks, None if what is None else 2)
    column = parquet.read_table(path, columns=[chosen])[chosen]
    if column.null_count:
        raise InputError(f"{path}:{chosen}: expected a value in every row, some are missing")
    if ranks[chosen] == 1:
        return column.to_numpy()
    sizes = np.unique(compute.list_value_length(column).to_numpy())
    if len(sizes) != 1:
        raise InputError(f"{path}:{chosen}: expected lists of one length, found {list(sizes)}")
    values = compute.list_flatten(column)
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy())) // int(sizes[0])
        raise InputError(f"{path}:{chosen}: expected numbers alone, row {row} has a null")
    return values.to_numpy().reshape(len(column), -1)


def _blocks(array):
    """Yields `(first row, rows)` of an array, which may be mapped, a block at a time."""
    for start in range(0, len(array), _BLOCK):
        yield start, np.asarray(array[start : start + _BLOCK])


def _version(path):
    """Numbers that change when a file does. Raises InputError if there is no such file."""
    try:
        facts = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return facts.st_size, facts.st_mtime_ns
