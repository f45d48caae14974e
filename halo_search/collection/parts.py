"""The parts of an encoded collection: files in a folder, and a manifest beside them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halo_search.collection.part_files import PARQUET, Columns, read_columns, write_columns
from halo_search.collection.sources import Items
from halo_search.embeddings.arrays import joined
from halo_search.errors import InputError
from halo_search.files.json_files import parsed
from halo_search.files.stores import open_file
from halo_search.files.written import read_sealed

MANIFEST = "manifest.json"


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


def write_part(
    file: Any, encoded: Encoded, dtype: str, items: Items | None = None, suffix: str = PARQUET
) -> None:
    """Writes a part to a path or an open file: names, stamps of the items, and the embedding; as
    Parquet, or as another format of `halo_search.collection.part_files`."""
    texts = {"name": encoded.names, "stamp": _stamps(encoded.names, items)}
    arrays = {
        key: values if key == "mask" else _stored_as(dtype, values, encoded.names)
        for key, values in encoded.arrays.items()
    }
    if encoded.uncertainty is not None:
        arrays["uncertainty"] = np.asarray(encoded.uncertainty, np.float32)
    stamps = _stamps([name for name, _ in encoded.rejected], items)
    rejected = [(*item, stamp) for item, stamp in zip(encoded.rejected, stamps, strict=True)]
    notes = {"rejected": rejected, "left": encoded.left}
    write_columns(file, Columns(texts, arrays, notes), suffix)


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
    texts, _, notes = read_columns(path, ["name", "stamp"])
    return texts["name"], texts["stamp"], notes["rejected"], notes["left"]


def read_part(path: Any, columns: Sequence[str] | None = None) -> Encoded:
    """A part without the rejected items, or some of its columns, of which `"name"` is one; an
    InputError if it cannot be read."""
    texts, arrays, _ = read_columns(path, columns)
    return Encoded(texts["name"], arrays, arrays.pop("uncertainty", None))


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
