"""What shards know of the contents of their items, so that no vector is taken for another's.

The contents of an item are `size-time-time:sha256`: the size of its file, the times of change of
its contents and of its inode, which are compared at once, and the hash of what was encoded, which
decides where those differ. Without a file, as of a caption, the first is empty. A program may set
back the first time, but not the second. A file that changed within the last seconds may change
again within one tick of the clock: its stamp ends with `-fresh` and equals none.
"""

import dataclasses
import functools
import hashlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo.collection import places
from zoo.collection.shards import Encoded, read_contents, read_rejected, read_shard
from zoo.collection.work import CONTAINER, FILES, ROWS, TEXTS, Work, read
from zoo.embeddings.arrays import joined
from zoo.errors import InputError
from zoo.files.vector_files import located, read_vectors

_FRESH, _TICK = "-fresh", 2 * 10**9  # nanoseconds; FAT's clock ticks every two seconds


def stamps(work: Work) -> list[str]:
    """Size and times of change of the file of every item; of a container one of the whole.

    To be asked for before the contents are read, so that a later change is seen.
    """
    if work.kind == FILES:
        return [_stamp(path) for path in work.items]
    if work.kind == TEXTS:
        return [""] * len(work.items)
    stamp = _stamp(work.path if work.kind == CONTAINER else located(work.path)[0])
    if work.kind == CONTAINER:
        return [stamp and f"{stamp}-{Path(work.path).name}"]
    return [stamp] * work.count


def hashed(data: bytes | str | np.ndarray | None) -> str:
    """SHA-256 of an item's contents; of nothing where it cannot be read."""
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).tobytes()
    elif isinstance(data, str):
        data = data.encode()
    return hashlib.sha256(data or b"").hexdigest()


@dataclasses.dataclass(frozen=True)
class Found:
    """Where an item's vector is: a row of a shard; none of an item that could not be read."""

    path: str
    row: int | None
    stamp: str
    sha256: str


class Known:
    """The items that are in shards already.

    Args:
        paths: of the shards; those of earlier versions know no contents and count for nothing.
        side: `"images"` or `"captions"`, for the choice of an array in a file of vectors.
        checksum: whether contents are compared where stamps are equal too.

    Raises:
        InputError: if a shard cannot be read.
    """

    def __init__(self, paths: Iterable[str], side: str = "images", checksum: bool = False):
        self._found, self._containers, self._side = {}, {}, side
        self._checksum = checksum
        for path in paths:
            names, contents = read_contents(path)
            rows = [*range(len(names))]
            for name, _, said in read_rejected(path):
                names, contents, rows = [*names, name], [*contents, said], [*rows, None]
            for name, said, row in zip(names, contents, rows, strict=True):
                stamp, _, sha256 = (said or "").rpartition(":")
                if sha256:
                    self._found.setdefault(name, []).append(Found(path, row, stamp, sha256))
                    items = self._containers.setdefault(stamp, {}).setdefault(path, [])
                    items.append((name, sha256))
        self._shard = functools.lru_cache(8)(read_shard)

    @functools.cached_property
    def names(self) -> set[str]:
        """The names of all items."""
        return set(self._found)

    def find(self, work: Work) -> list[Found | None]:
        """Each item's place, with its stamp of now; None where it is new or has changed.

        The work is of any kind but a container.
        """
        found, reader = [], _reader(work, self._side)
        for number, (name, stamp) in enumerate(zip(work.names, stamps(work), strict=True)):
            entries = self._found.get(name, ())
            same = next((e for e in entries if self._is_same(e.stamp, stamp)), None)
            if same is None and entries:
                sha256 = hashed(reader(number))
                same = next((e for e in entries if e.sha256 == sha256), None)
                same = same and dataclasses.replace(same, stamp=stamp)
            found.append(same)
        return found

    def container(self, work: Work) -> str | None:
        """The shard of a container that has not changed, or None."""
        (stamp,) = stamps(work)
        for known, found in self._containers.items():
            if self._is_same(known, stamp):
                return next(iter(found))
        # Its name or the times of its inode are others: its items decide, which are not encoded.
        likely = [items for s, items in self._containers.items() if _size(s) == _size(stamp)]
        if not stamp or not likely:
            return None
        now = sorted((name, hashed(data)) for name, data, _ in read(work, self._side))
        found = (path for paths in likely for path, items in paths.items() if sorted(items) == now)
        return next(found, None)

    def _is_same(self, known, stamp):
        return bool(stamp) and known == stamp and not self._checksum and _FRESH not in stamp

    def shard(self, path: str) -> Encoded:
        """A shard as it was encoded, with the rejected items."""
        whole, rejected = self._shard(path), read_rejected(path)
        contents = [*whole.contents, *(said for _, _, said in rejected)]
        pairs = [(name, reason) for name, reason, _ in rejected]
        return dataclasses.replace(whole, rejected=pairs, contents=contents)

    def rows(self, found: Sequence[Found]) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
        """`(arrays, uncertainty)` of items, in their order."""
        arrays, uncertainty, order = [], [], []
        for path in dict.fromkeys(entry.path for entry in found):
            own = [number for number, entry in enumerate(found) if entry.path == path]
            shard, rows = self._shard(path), [found[number].row for number in own]
            arrays.append({key: value[rows] for key, value in shard.arrays.items()})
            uncertainty.append(None if shard.uncertainty is None else shard.uncertainty[rows])
            order += own
        back = np.argsort(order)
        whole = {key: value[back] for key, value in joined(arrays).items()}
        if not uncertainty or uncertainty[0] is None:
            return whole, None
        return whole, np.concatenate(uncertainty)[back]


def changed(
    pieces: Sequence[Work], paths: dict[int, str], side: str = "images", checksum: bool = False
) -> list[str]:
    """Names of items, or containers, of other contents than when their shards were written.

    `paths` are of the shards that are there, by number. Captions are part of the work's digest, and
    of an object store nothing is asked.
    """
    names = []
    for work in pieces:
        local = work.kind != TEXTS and work.number in paths and any(stamps(work))
        if not local:
            continue
        known = Known([paths[work.number]], side, checksum)
        if not known.names:  # nothing says of what it is
            continue
        if work.kind == CONTAINER:
            names += [work.path] if known.container(work) is None else []
        else:
            found = zip(work.names, known.find(work), strict=True)
            names += [name for name, entry in found if entry is None]
    return names


def reusing(encoder: Callable[..., Encoded], known: Known) -> Callable[..., Encoded]:
    """An encoder, from a `Work` to an `Encoded`, that reuses known vectors of the same model."""

    def encode(work: Work, advance: Callable[[int], Any] = lambda count: None) -> Encoded:
        if work.kind == CONTAINER:
            path = known.container(work)
            return encoder(work, advance) if path is None else known.shard(path)
        found = known.find(work)
        there = [number for number, entry in enumerate(found) if entry and entry.row is not None]
        if not there:
            return encoder(work, advance)
        advance(len(there))
        rest = sorted(set(range(len(found))) - set(there))
        new = [encoder(piece, advance) for piece in _pieces(work, rest)]
        return _merged(work, [found[number] for number in there], there, rest, new, known)

    return encode


def _merged(work, found, there, rest, new, known):
    arrays, uncertainty = known.rows(found)
    names = [name for part in new for name in part.names]
    contents = [said for part in new for said in (part.contents or [])[: len(part.names)]]
    rejected = [pair for part in new for pair in part.rejected]
    why_not = [said for part in new for said in (part.contents or [])[len(part.names) :]]
    # What was encoded anew is a part of the rest, in its order.
    encoded, expected = [], iter(names)
    wanted = next(expected, None)
    for number in rest:
        if work.names[number] == wanted:
            encoded.append(number)
            wanted = next(expected, None)
    order = np.argsort([*there, *encoded], kind="stable")
    parts = [part.arrays for part in new if part.names]
    whole = joined([arrays, *parts])
    own = [f"{entry.stamp}:{entry.sha256}" for entry in found]
    if uncertainty is not None:
        more = [part.uncertainty for part in new if part.names]
        uncertainty = np.concatenate([uncertainty, *more])[order]
    all_names = [*(work.names[number] for number in there), *names]
    all_contents = [*own, *contents]
    return Encoded(
        [all_names[place] for place in order],
        {key: value[order] for key, value in whole.items()},
        uncertainty,
        rejected,
        [*(all_contents[place] for place in order), *why_not],
    )


def _pieces(work, numbers) -> Iterator[Work]:
    """The work of some items; rows of a file come in runs."""
    if not numbers:
        return
    names = tuple(work.names[number] for number in numbers)
    if work.kind != ROWS:
        items = tuple(work.items[number] for number in numbers)
        yield dataclasses.replace(work, names=names, items=items)
        return
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in run]
        items = work.items[0] + run[0], work.items[0] + run[-1] + 1
        names = work.names[run[0] : run[-1] + 1]
        yield dataclasses.replace(work, names=names, items=items)


def _reader(work, side):
    """Function from an item's number to its contents, None where it cannot be read."""
    if work.kind == TEXTS:
        return lambda number: work.items[number]
    if work.kind == FILES:
        return lambda number: _bytes(work.items[number])

    @functools.cache
    def vectors():
        return read_vectors(work.path, side)

    return lambda number: _row(vectors(), work.items[0] + number)


def _row(vectors, row):
    return np.asarray(vectors[row]) if row < len(vectors) else None


def _bytes(path):
    try:
        return places.read_bytes(path)
    except InputError:  # which is said when it is encoded
        return None


def _stamp(path):
    if places.is_remote(path):
        return ""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ""
    stamp = f"{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"
    age = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)
    return stamp if age > _TICK else stamp + _FRESH


def _size(stamp):
    return stamp.partition("-")[0]
