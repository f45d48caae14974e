"""The parts of an encoded collection: Parquet files in a folder, and a manifest beside them."""

import contextlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halo_search.collection.sources import Items
from halo_search.embeddings.arrays import joined
from halo_search.errors import InputError, require
from halo_search.files.json_files import parsed
from halo_search.files.stores import open_file
from halo_search.files.written import read_sealed

MANIFEST = "manifest.json"
_NOTES = b"halo"


@dataclass
class Encoded:
    """What became of some items.

    ```python
    mean = np.zeros((2, 8), "float32")
    rejected = [("c.jpg", "not an image")]
    halo_search.collection.Encoded(["a.jpg", "b.jpg"], {"mean": mean}, rejected=rejected)
    ```
    """

    names: list[str]  # of the items that were encoded, in order
    arrays: dict[str, np.ndarray]  # their embedding, with `len(names)` rows; empty without any
    uncertainty: np.ndarray | None = None  # float32 `(len(names),)`, or None of points
    rejected: list[tuple[str, str]] = field(default_factory=list)  # `(name, reason)` of the others
    left: dict[str, int] = field(default_factory=dict)  # other members of an archive, by reason

    def take(self, rows: Any) -> "Encoded":
        """Some of the items, by numbers."""
        some = {key: values[rows] for key, values in self.arrays.items()}
        sure = None if self.uncertainty is None else self.uncertainty[rows]
        return Encoded([self.names[row] for row in rows], some, sure)


def merged(parts: Sequence[Encoded]) -> Encoded:
    """Several `Encoded` as one."""
    full = [part for part in parts if part.names]
    sure = [part.uncertainty for part in full]
    is_sure = bool(sure) and all(values is not None for values in sure)
    return Encoded(
        [name for part in full for name in part.names],
        joined([part.arrays for part in full]),
        np.concatenate(sure) if is_sure else None,
        [pair for part in parts for pair in part.rejected],
    )


def _arrow():
    """`(pyarrow, pyarrow.parquet)`, which a question does not need. Raises MissingPackageError."""
    return require("pyarrow", extra="arrow"), require("pyarrow.parquet", extra="arrow")


def write_part(file: Any, encoded: Encoded, dtype: str, items: Items | None = None) -> None:
    """Writes a part to a path or an open file: names, stamps of the items, and the embedding."""
    arrow, parquet = _arrow()
    columns = {
        "name": arrow.array(encoded.names, arrow.string()),
        "stamp": arrow.array(_stamps(encoded.names, items), arrow.string()),
    }
    for key, values in encoded.arrays.items():
        flat = values if key == "mask" else _stored_as(dtype, values, encoded.names)
        column = arrow.array(np.ascontiguousarray(flat).reshape(-1))
        width = int(np.prod(values.shape[1:]))
        is_scalar = values.ndim == 1
        columns[key] = column if is_scalar else arrow.FixedSizeListArray.from_arrays(column, width)
    if encoded.uncertainty is not None:
        columns["uncertainty"] = arrow.array(np.asarray(encoded.uncertainty, np.float32))
    stamps = _stamps([name for name, _ in encoded.rejected], items)
    pairs = zip(encoded.rejected, stamps, strict=True)
    notes = {
        "shapes": {key: values.shape[1:] for key, values in encoded.arrays.items()},
        "rejected": [(*rejected, stamp) for rejected, stamp in pairs],
        "left": encoded.left,
    }
    table = arrow.table(columns).replace_schema_metadata({_NOTES: json.dumps(notes)})
    # Vectors do not get smaller.
    how = {"compression": {"name": "zstd"}, "use_dictionary": False}
    parquet.write_table(table, file, **how, write_page_checksum=True)


def _stored_as(dtype, values, names):
    """Numbers of items as they are stored; an InputError if the type cannot hold one."""
    with np.errstate(over="ignore"):
        stored = values.astype(dtype)
    is_lost = (np.isinf(stored) & np.isfinite(values)).any(axis=tuple(range(1, values.ndim)))
    if is_lost.any():
        name = names[int(is_lost.argmax())]
        raise InputError(f"--dtype {dtype}: cannot hold the numbers of {name}; use float32")
    return stored


def _stamps(names, items):
    """The stamps of some of the items, by their names in order."""
    if items is None:
        return [""] * len(names)
    rest = iter(zip(items.names, items.stamps, strict=True))
    return [next(stamp for item, stamp in rest if item == name) for name in names]


def read_names(path: Any) -> tuple[list[str], list[str], list[list[str]], dict[str, int]]:
    """`(names, stamps, rejected, left)` of a part, `[name, reason, stamp]` of what was rejected."""
    with _reading(path, ["name", "stamp"]) as (table, notes):
        names, stamps = (table[name].to_pylist() for name in ("name", "stamp"))
        return names, stamps, notes["rejected"], notes["left"]


def read_part(path: Any, columns: Sequence[str] | None = None) -> Encoded:
    """A part without the rejected items, or some of its columns, of which `"name"` is one; an
    InputError if it cannot be read."""
    with _reading(path, columns) as (table, notes):
        arrays = {}
        for key in notes["shapes"].keys() & {*table.column_names}:
            column = table[key].combine_chunks()
            values = column.flatten() if notes["shapes"][key] else column
            values = values.to_numpy(zero_copy_only=False)
            arrays[key] = values.reshape(len(table), *notes["shapes"][key])
        sure = table["uncertainty"].to_numpy() if "uncertainty" in table.column_names else None
        return Encoded(table["name"].to_pylist(), arrays, sure)


@contextlib.contextmanager
def _reading(path, columns):
    """Yields `(table, notes)` of a part."""
    _, parquet = _arrow()
    try:
        with open_file(path) as file:
            # Threads of Arrow that still hold a buffer of Python's abort a process that ends.
            how = {"pre_buffer": False, "page_checksum_verification": True}
            table = parquet.ParquetFile(file, **how).read(columns=columns, use_threads=False)
        yield table, json.loads(table.schema.metadata[_NOTES])
    except InputError:
        raise
    except Exception as error:  # damage leads Arrow to a dozen kinds, with messages of lines
        reason = " ".join(str(error).split())
        expected = f"not a part of embeddings ({reason}); delete it and encode again"
        raise InputError(f"{path}: {expected}") from error


class Collection:
    """What `encode` wrote: an item's number is its row, counted through all parts.

    ```python
    items = halo_search.collection.captions(["a red bird"])
    tower = halo_search.open_tower("toy_birds_pfe", "captions")
    collection = halo_search.collection.encode(items, tower, "parts", {"model": "toy_birds_pfe"})
    collection.whole().arrays["mean"].shape  # (1, 64)
    ```

    Args:
        folder: here or in an object store; an InputError if it is none, or encoding has not ended.
        parts: those of the manifest of an earlier state; None takes the present ones.

    Attributes:
        manifest: what is encoded, by which model, what was counted and what could not be read.
        ids: the numbers of the items, ascending.
    """

    def __init__(self, folder: Any, parts: list[dict[str, Any]] | None = None):
        self.folder = folder
        root = str(folder).rstrip("/")
        path = f"{root}/{MANIFEST}"
        with open_file(path) as file:
            self.manifest = read_sealed(path, parsed(path, file.read()))
        if "parts" not in self.manifest:
            raise InputError(f"{folder}: its encoding has not ended; run it again to resume")
        self.parts = self.manifest["parts"] if parts is None else parts
        self._paths = [f"{root}/{part['file']}" for part in self.parts]
        self._starts = [0, *itertools.accumulate(part["items"] for part in self.parts)]
        self.ids = np.setdiff1d(np.arange(self._starts[-1]), self.manifest["gone"])

    def __len__(self) -> int:
        return len(self.ids)

    def read(
        self, ids: Any = None, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[np.ndarray, Encoded]]:
        """`(ids, Encoded)` of the items part by part, of all or of some ascending ids, and of some
        `columns` of which `"name"` is one."""
        ids = self.ids if ids is None else np.asarray(ids)
        for number, path in enumerate(self._paths):
            start, stop = self._starts[number], self._starts[number + 1]
            in_part = ids[np.searchsorted(ids, start) : np.searchsorted(ids, stop)]
            if not len(in_part):
                continue
            part = read_part(path, columns)
            if len(part.names) != stop - start:
                raise InputError(f"{path}: expected {stop - start} items, found {len(part.names)}")
            yield in_part, part.take(in_part - start)

    def whole(self, ids: Any = None) -> Encoded:
        """All items, or some ascending ids, as one; an InputError if a part cannot be read."""
        return merged([part for _, part in self.read(ids)])

    def uncertainty(self, ids: Any) -> np.ndarray | None:
        """That of some ascending ids, read without their vectors; None of points."""
        return merged([part for _, part in self.read(ids, ["name", "uncertainty"])]).uncertainty

    def rejected(self) -> list[tuple[str, str]]:
        """`(name, reason)` of every item that could not be read."""
        return [(name, reason) for name, reason in self.manifest["rejected"]]
