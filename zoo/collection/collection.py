"""An encoded collection: the shards of a folder as one list of items."""

import bisect
import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from zoo.collection import places
from zoo.collection.shards import (
    JOB,
    MANIFEST,
    Encoded,
    read_names,
    read_shard,
    rejected_name,
)
from zoo.errors import InputError


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
        """One shard.

        Raises:
            InputError: if it cannot be read, or has other items than the manifest says.
        """
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
