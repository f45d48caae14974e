"""Shards of embeddings as Parquet files, and the collection that they make."""

import bisect
import dataclasses
import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from zoo.collection import places
from zoo.errors import InputError, require

JOB, MANIFEST = "job.json", "manifest.json"  # beside them
_NOTES = b"halo"


@dataclasses.dataclass
class Encoded:
    """What became of the items of one shard.

    ```python
    mean = np.zeros((2, 8), "float32")
    zoo.collection.Encoded(["a.jpg", "b.jpg"], {"mean": mean}, rejected=[("c.jpg", "not an image")])
    ```

    Attributes:
        names: of the items that were encoded, in order.
        arrays: their embedding, a dict of arrays with `len(names)` rows; empty if there is none.
        uncertainty: float32 `(len(names),)`, or None of points.
        rejected: `(name, reason)` of every item that was not.
        contents: what was in the items and then in the rejected ones, see
            `zoo.collection.contents`; None where that is not known.
    """

    names: list[str]
    arrays: dict[str, np.ndarray]
    uncertainty: np.ndarray | None = None
    rejected: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    contents: list[str] | None = None


def shard_name(number: int) -> str:
    """The file of a shard."""
    return f"shard-{number:06d}.parquet"


def rejected_name(number: int) -> str:
    """The file with the rejected items of a shard."""
    return f"rejected-{number:06d}.jsonl"


def write_shard(folder: Any, number: int, encoded: Encoded, dtype: str = "float32") -> None:
    """Writes `shard-000007.parquet`, and before it `rejected-000007.jsonl` if it is needed.

    Both are whole or not there, and a shard that is there has its rejected items beside it. To
    write it again writes the same.

    Args:
        folder: a folder here or in an object store.
        number: of the shard.
        encoded: its items.
        dtype: of the vectors; the uncertainty is always float32.

    Raises:
        InputError: if a file cannot be written.
    """
    if encoded.rejected:
        said = (encoded.contents or [])[len(encoded.names) :] or [""] * len(encoded.rejected)
        lines = (
            json.dumps({"name": name, "reason": why, **({"contents": what} if what else {})})
            for (name, why), what in zip(encoded.rejected, said, strict=True)
        )
        with places.written(places.join(folder, rejected_name(number))) as file:
            file.write("".join(line + "\n" for line in lines).encode())
    table = _table(encoded, dtype)
    parquet = require("pyarrow.parquet", extra="search")
    with places.written(places.join(folder, shard_name(number))) as file:
        # Vectors do not get smaller.
        parquet.write_table(table, file, compression={"name": "zstd"}, use_dictionary=False)


def read_shard(path: Any) -> Encoded:
    """What a shard holds, without the rejected items; an InputError if it cannot be read."""
    return _read(path, None)


def read_names(path: Any) -> list[str]:
    """The names of the items of a shard; raises as `read_shard`."""
    return _read(path, ["name"]).names


def read_uncertainty(path: Any) -> np.ndarray | None:
    """The uncertainty of the items of a shard, None of points; raises as `read_shard`."""
    return _read(path, ["name", "uncertainty"]).uncertainty


def read_contents(path: Any) -> tuple[list[str], list[str]]:
    """`(names, contents)` of the items of a shard; the contents are `""` where none are known."""
    shard = _read(path, ["name", "contents"])
    return shard.names, shard.contents or [""] * len(shard.names)


def read_rejected(path: Any) -> list[tuple[str, str, str]]:
    """`(name, reason, contents)` of the items that were rejected beside a shard."""
    folder, _, name = str(path).rpartition("/")
    name = rejected_name(int(name.removeprefix("shard-").removesuffix(".parquet")))
    if not read_notes(path)["rejected"]:
        return []
    lines = places.read_bytes(places.join(folder or ".", name)).splitlines()
    items = [json.loads(line) for line in lines]
    return [(item["name"], item["reason"], item.get("contents", "")) for item in items]


def read_notes(path: Any) -> dict[str, int]:
    """How many items a shard has, and how many were rejected, out of the file's last bytes."""
    parquet = require("pyarrow.parquet", extra="search")
    try:
        with places.open_file(path) as file:
            metadata = parquet.ParquetFile(file).metadata
            notes = json.loads(metadata.metadata[_NOTES])
        return {"items": metadata.num_rows, "rejected": notes["rejected"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {_not_a_shard(error)}") from error


def _table(encoded, dtype):
    arrow = require("pyarrow", extra="search")
    columns = {"name": arrow.array(encoded.names, arrow.string())}
    for key, values in encoded.arrays.items():
        flat = values if key == "mask" else values.astype(dtype)
        flat = arrow.array(np.ascontiguousarray(flat).reshape(-1))
        width = int(np.prod(values.shape[1:]))
        whole = values.ndim == 1
        columns[key] = flat if whole else arrow.FixedSizeListArray.from_arrays(flat, width)
    if encoded.uncertainty is not None:
        columns["uncertainty"] = arrow.array(np.asarray(encoded.uncertainty, np.float32))
    if encoded.contents is not None:
        columns["contents"] = arrow.array(encoded.contents[: len(encoded.names)], arrow.string())
    shapes = {key: values.shape[1:] for key, values in encoded.arrays.items()}
    notes = {"shapes": shapes, "rejected": len(encoded.rejected)}
    return arrow.table(columns).replace_schema_metadata({_NOTES: json.dumps(notes)})


def _read(path, columns):
    parquet = require("pyarrow.parquet", extra="search")
    try:
        with places.open_file(path) as file:
            # Arrow's threads give Python's buffers back after they have told that they are done: a
            # process that ends by then is aborted. So it has none.
            stored = parquet.ParquetFile(file, pre_buffer=False)
            wanted = [
                name for name in stored.schema_arrow.names if columns is None or name in columns
            ]
            table = stored.read(columns=wanted, use_threads=False)  # it may hold no contents
        notes = json.loads(table.schema.metadata[_NOTES])
        arrays = {
            key: _array(table[key], len(table), shape)
            for key, shape in notes["shapes"].items()
            if key in table.column_names
        }
        uncertainty = None
        if "uncertainty" in table.column_names:
            uncertainty = table["uncertainty"].to_numpy()
        contents = table["contents"].to_pylist() if "contents" in table.column_names else None
        return Encoded(table["name"].to_pylist(), arrays, uncertainty, contents=contents)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {_not_a_shard(error)}") from error


def _array(column, rows, shape):
    values = column.combine_chunks()
    if shape:
        values = values.flatten()
    return values.to_numpy(zero_copy_only=False).reshape(rows, *shape)


def _not_a_shard(error):
    said = " ".join(str(error).split())  # Arrow's messages have several lines
    return f"not a shard of embeddings ({said}); delete it and encode again"


class Collection:
    """What `halo search encode` wrote. Item `i` is row `i`, counted through all shards.

    | file | holds |
    |---|---|
    | `job.json` | what is encoded, by which model; written first |
    | `shard-000007.parquet` | `name`, the parts of the embedding, `uncertainty`, `contents` |
    | `rejected-000007.jsonl` | `name` and `reason` of items that could not be read |
    | `manifest.json` | the job, and how many items each shard has; written last |

    ```python
    pieces = zoo.collection.of_items("texts", ["a red bird"], ["a red bird"])
    tower = zoo.Tower("toy_birds_pfe", "captions")
    zoo.collection.encode(pieces, tower, "shards", {"model": "toy_birds_pfe"})
    for shard in zoo.collection.Collection("shards").shards():
        print(shard.names, shard.arrays["mean"].shape)
    ```

    Args:
        folder: here or in an object store.

    Raises:
        InputError: if it is no such folder, or the encoding has not ended.
    """

    def __init__(self, folder: Any):
        self.folder = folder
        there = {path.rpartition("/")[2] for path in places.matching(folder, "*.json")}
        if MANIFEST not in there:
            unfinished = "its encoding has not ended; call encode again, which goes on"
            unfinished = unfinished if JOB in there else "expected what `encode` wrote"
            raise InputError(f"{folder}: has no {MANIFEST}: {unfinished}")
        path = places.join(folder, MANIFEST)
        try:
            self.manifest = json.loads(places.read_bytes(path))
            files = [(e["file"], e["items"], e["rejected"]) for e in self.manifest["files"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path}: not a manifest of shards ({error!r})") from error
        for file in files:
            if [type(value) for value in file] != [str, int, int] or min(file[1:]) < 0:
                raise InputError(f"{path}: expected a file's name and two counts, found {file}")
        names, counts, self._rejected = zip(*files, strict=True) if files else ((), (), ())
        self.paths = [places.join(folder, name) for name in names]
        self.starts = [0, *itertools.accumulate(counts)]
        self._names = functools.lru_cache(16)(lambda number: read_names(self.paths[number]))

    def __len__(self) -> int:
        return self.starts[-1]

    def shard(self, number: int) -> Encoded:
        """One shard; an InputError if it cannot be read, or lacks items of the manifest."""
        encoded = read_shard(self.paths[number])
        expected = self.starts[number + 1] - self.starts[number]
        if len(encoded.names) != expected:
            raise InputError(
                f"{self.paths[number]}: expected {expected} items, found {len(encoded.names)}"
            )
        return encoded

    def shards(self) -> Iterator[Encoded]:
        """All shards that have items, one at a time."""
        for number in range(len(self.paths)):
            if self.starts[number + 1] > self.starts[number]:
                yield self.shard(number)

    def names(self, rows: Sequence[int]) -> list[str]:
        """The names of some items, reading only the names of their shards."""
        found = []
        for row in rows:
            number = bisect.bisect_right(self.starts, row) - 1
            found.append(self._names(number)[row - self.starts[number]])
        return found

    def rejected(self) -> Iterator[tuple[str, str]]:
        """`(name, reason)` of every item that could not be read."""
        for number, count in enumerate(self._rejected):
            if count:
                path = places.join(self.folder, rejected_name(number))
                for line in places.read_bytes(path).splitlines():
                    item = json.loads(line)
                    yield item["name"], item["reason"]
