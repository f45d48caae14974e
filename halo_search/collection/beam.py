"""Encodes patterns of pictures or of WebDataset tars by Apache Beam, in any store: a part for each
tar and every few thousand pictures, named by the names, sizes and times of its files, so that a
second run encodes what is missing or has changed."""

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import os
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from halo_search.collection import parts
from halo_search.collection.encoding import PART_SIZE, differing, encode_items, outcome
from halo_search.collection.parts import MANIFEST, Collection, Encoded
from halo_search.collection.sources import PICTURES, TEXTS, Items, members_of, open_file
from halo_search.errors import InputError
from halo_search.files.decoding import SUFFIXES
from halo_search.files.folders import is_hidden, printable
from halo_search.files.json_files import parsed
from halo_search.files.written import KEY, read_sealed, sealed
from halo_search.towers import Tower, open_tower

_TAR, _TEMPORARY = ".tar", ".tmp-"
_AT_ONCE = 8  # batches whose files are in memory together


class Unit(NamedTuple):
    """The file of a part, and the names and paths of what goes into it."""

    part: str
    names: tuple[str, ...]
    paths: tuple[str, ...]


def units_of(
    source: str, side: str = "images", part_size: int = PART_SIZE
) -> tuple[list[Unit], dict[str, int]]:
    """The units of a pattern, a file or a folder; and how many other files were left, by suffix."""
    source = str(source).rstrip("/")
    if "*" not in source and not source.endswith(_TAR):
        source += "/**"
    start = len(source.partition("*")[0].rpartition("/")[0]) + 1
    tars, pictures, left = [], [], Counter()
    for entry in sorted(_matching(source), key=lambda entry: entry.path):
        suffix = PurePosixPath(entry.path).suffix.lower()
        if is_hidden(entry.path[start:]):
            left["hidden"] += 1
        elif suffix == _TAR:
            tars.append([entry])
        elif suffix in SUFFIXES and side == "images":
            pictures.append(entry)
        else:
            left[printable(suffix) or "no suffix"] += 1
    groups = tars + [pictures[n : n + part_size] for n in range(0, len(pictures), part_size)]
    if not groups:
        raise InputError(f"{source}: holds no tar" + " and no image" * (side == "images"))
    return [_unit(group, start) for group in groups], dict(left)


def encode_on(
    runner: Any,
    source: str,
    model: str,
    side: str,
    folder: str,
    identity: dict[str, Any],
    dtype: str = "float32",
    batch_size: int = 64,
    part_size: int = PART_SIZE,
    flags: Sequence[str] = (),
) -> Collection:
    """Encodes by a runner and its flags what no earlier call has written. A bundle that runs twice
    writes the same part, by one rename. Workers have to reach the model too."""
    check_flags(flags)
    (units, left), folder = units_of(source, side, part_size), str(folder).rstrip("/")
    there = {os.path.basename(entry.path) for entry in _matching(f"{folder}/*")}
    before, path = {}, f"{folder}/{MANIFEST}"
    if MANIFEST in there:
        with open_file(path) as file:
            before = read_sealed(path, parsed(path, file.read()))
    identity = {**identity, "dtype": dtype}
    own = {MANIFEST, *before[KEY]} if KEY in before else set()
    if foreign := sorted(n for n in there - own if not n.startswith(_TEMPORARY)):
        raise InputError(f"{folder}: holds {foreign[0]}, which this program did not write")
    if before and (other := differing(before, identity)):
        raise InputError(f"{folder}: holds embeddings of other work ({', '.join(other)} differ)")
    listed = {*before.get(KEY, ()), *(unit.part for unit in units)}
    manifest = {**before, **identity, KEY: sorted(listed)}
    with _written(path) as file:
        file.write(json.dumps(sealed(manifest)).encode())
    if new := [unit for unit in units if unit.part not in there]:
        pipeline = beam.Pipeline(runner=runner, options=PipelineOptions(list(flags)))
        encode = Encode(str(model), side, batch_size, folder, dtype)
        _ = pipeline | beam.Create(new, reshuffle=True) | beam.ParDo(encode)
        pipeline.run().wait_until_finish()
    notes = [parts.read_names(f"{folder}/{unit.part}") for unit in units]
    files = [{"file": u.part, "items": len(n)} for u, (n, *_) in zip(units, notes, strict=True)]
    rejected = [(name, reason) for *_, found, _ in notes for name, reason, _ in found]
    taken = range(sum(file["items"] for file in files))
    left = sum((Counter(others) for *_, others in notes), Counter(left))
    seen = len(taken) + len(rejected) + left.total()
    ended = {**manifest, **outcome(files, taken, rejected, seen, dict(left))}
    with _written(path) as file:
        file.write(json.dumps(sealed(ended), indent=2).encode())
    return Collection(folder)


class Encode(beam.DoFn):
    """Encodes units, each to its part."""

    def __init__(self, model: str, side: str, batch_size: int, folder: str, dtype: str):
        super().__init__()
        self._tower, self._folder, self._dtype = (model, side, batch_size), folder, dtype

    def process(self, unit: Unit) -> None:
        encoded = encode_unit(_tower(*self._tower), Unit(*unit))
        with _written(f"{self._folder}/{unit[0]}") as file:
            parts.write_part(file, encoded, self._dtype)


def encode_unit(tower: Tower, unit: Unit) -> Encoded:
    """What became of the items of a unit."""
    kind, found, left = PICTURES if tower.side == "images" else TEXTS, [], Counter()
    is_tar = unit.paths[0].endswith(_TAR)
    contents = members_of(unit.paths[0], kind, left) if is_tar else _of_files(unit)
    while batch := list(itertools.islice(contents, _AT_ONCE * tower.batch_size)):
        bad = [(name, reason) for name, _, reason in batch if reason is not None]
        found.append(Encoded([], {}, None, bad))
        if good := [(name, value) for name, value, reason in batch if reason is None]:
            names, values = zip(*good, strict=True)
            found.append(encode_items(tower, Items(kind, names, values, names)))
    return dataclasses.replace(parts.merged(found), left=dict(left))


def check_flags(flags: Sequence[str]) -> None:
    """An InputError of flags that no runner here knows, which Beam itself would drop."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    if unknown := parser.parse_known_args(list(flags))[1]:
        raise InputError(f"Apache Beam knows no flag {unknown[0]!r}")


def _matching(pattern):
    try:
        return FileSystems.match([pattern])[0].metadata_list
    except OSError as error:  # Beam's own is one
        raise InputError(f"{pattern}: {error}") from error


def _unit(entries, start):
    facts = [(e.path, e.size_in_bytes, e.last_updated_in_seconds) for e in entries]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    paths = tuple(entry.path for entry in entries)
    names = tuple(printable(path[start:]) for path in paths)
    return Unit(f"part-{digest}.parquet", names, paths)


@functools.lru_cache(maxsize=1)  # loaded once per process
def _tower(model, side, batch_size):
    return open_tower(model, side, batch_size)


def _of_files(unit):
    for name, path in zip(unit.names, unit.paths, strict=True):
        try:
            with open_file(path) as file:
                yield name, file.read(), None
        except InputError as error:
            yield name, None, str(error).removeprefix(f"{path}: ")


@contextlib.contextmanager
def _written(path):
    """A file that is at `path` whole when the block ends, by a rename of one of its own."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/{_TEMPORARY}{uuid.uuid4().hex[:16]}-{name}"
    with FileSystems.create(temporary) as file:
        yield file
    FileSystems.rename([temporary], [path])
