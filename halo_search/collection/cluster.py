"""Encodes the items of a source on the nodes of a Ray cluster, into the parts of `encode`.

The driver lists the source and cuts what is new into units, each of which becomes one part. An
actor per CPU, or per GPU for a Keras model, opens the tower once and writes whole parts. A part is
named by a hash of its items, so a unit that runs twice, since its node died, writes the same file.
Vectors never pass through the driver.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from halo_search import presets
from halo_search.collection.encoding import (
    DTYPES,
    PART_SIZE,
    Known,
    begin,
    check_part_size,
    outcome,
    part_files,
)
from halo_search.collection.listing import read_listing
from halo_search.collection.parts import MANIFEST, Collection
from halo_search.collection.progress import progress_bar
from halo_search.collection.ray_cluster import AUTO, connected, require_ray_data, run
from halo_search.collection.units import Job, Unit
from halo_search.errors import InputError
from halo_search.files.stores import is_remote, plain, present_in, written_in
from halo_search.towers import open_tower
from halo_search.towers.onnx import OnnxTower

_UNITS_PER_ACTOR = 8  # at least, so that nodes end together, and a dead one loses little
_LEAST = 64  # items that are worth a part
_SOME = 3  # names in a message


def encode_on_cluster(
    source: Any,
    model: Any,
    folder: Any,
    address: str = AUTO,
    side: str = "images",
    column: str | None = None,
    names: Sequence[str] | None = None,
    dtype: str = "float32",
    part_size: int = PART_SIZE,
    batch_size: int = 16,
    progress: bool = True,
) -> Collection:
    """Encodes what is new or has changed since the last call on the nodes of a Ray cluster.

    Items that cannot be read are left out and listed, as by `encode`. A call that was stopped
    resumes with the next one. A node that dies has its units encoded by other nodes; a node that is
    added takes part.

    ```python
    from halo_search.collection.cluster import encode_on_cluster

    collection = encode_on_cluster("s3://bucket/photos", "photos_pfe", "s3://bucket/parts")
    collection.manifest["count"]  # {"seen": …, "taken": …, "left": {…}}
    ```

    Args:
        source: as of `read_source`; or a tar of pictures (with `side="captions"` of `.txt` texts),
            a folder with tars, a pattern such as `photos-*.tar`, or any of these in an object
            store. All nodes must reach it.
        model: a name or a path, which all nodes must reach too.
        folder: of the parts, here or in an object store; new, or as an earlier call left it.
        address: of the cluster, `"host:6379"`; `"auto"`: the cluster that `RAY_ADDRESS` or
            `ray start` on this machine names, else one that is started on this machine.
        side, column, names: as of `read_source`.
        dtype, part_size: as of `encode`. Where there are few items, parts are smaller, so that all
            nodes take part.
        batch_size: pictures at once.
        progress: whether to draw a bar.

    Raises:
        InputError: as `encode`; if there is no such cluster, or a node does not reach the source,
            the folder or the model.
        MissingPackageError: if Ray is not installed, here or on a node.
    """
    check_part_size(part_size)
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be one of {DTYPES}; received {dtype!r}")
    require_ray_data()
    model = presets.absolute(model)
    tower = open_tower(model, side, batch_size)
    source, folder = _shared(source), _shared(folder)
    items, tars = read_listing(source, side, column, names, tower.reads == "vectors")
    written = written_in(folder, MANIFEST)
    identity = {"model": str(model), "model_sha256": tower.model_sha256, "side": side}
    before = begin(written, folder, {**identity, "dtype": dtype})

    tar_units = [Unit(_tar_part(tar), tar=tar) for tar in tars]
    present = part_files(written.names & present_in(written), before)
    known = Known(folder, present, {unit.part for unit in tar_units})
    rows, rejected, new = known.of(items)
    if "parts" in before and (new or known.gone):
        print(f"{folder}: {known.difference(items, new)}")
    waiting = [unit for unit in tar_units if unit.part not in present]
    results = []
    if new or waiting:
        job = Job(model, tower.model_sha256, side, batch_size, folder, dtype, source)
        needs_gpu = not isinstance(tower, OnnxTower)
        with connected(address) as cluster, progress_bar(progress) as shown:
            actors, resources = cluster.actors(needs_gpu)
            units = _units_of(items, new, part_size, actors) + waiting
            written.claim(*(unit.part for unit in units))
            total = None if tars else len(items)  # nobody knows how many items a tar holds
            task = shown.add_task("encoding", total=total, completed=len(items) - len(new))
            for result in run(job, units, resources):
                results.append(result)
                shown.advance(task, result["seen"])
        results.sort(key=lambda result: result["number"])
        _check_written(written, [result["part"] for result in results])
        print(f"{folder}: encoded on {_shares(results)}")
    ended = _outcome(known, rows, rejected, items.left, results)
    written.write({**written.content, **ended})
    return Collection(folder)


def _units_of(items, new, part_size, actors):
    """The new items, by their numbers, as units, each small enough that all actors take part."""
    size = _size_of_parts(len(new), part_size, actors)
    chunks = [items.take(new[start : start + size]) for start in range(0, len(new), size)]
    return [Unit(_items_part(chunk), items=chunk) for chunk in chunks]


def _outcome(known, rows, rejected, skipped, results):
    """What the manifest says in the end: of earlier parts, with the `rows` of items that are as
    they were, and of the units that were encoded now."""
    files, total = list(known.files), known.total
    rows, rejected = [*rows, *known.rows_of_tars], [*rejected, *known.rejected_of_tars]
    skipped = Counter(skipped) + known.skipped_of_tars
    for result in results:
        files.append({"file": result["part"], "items": result["items"]})
        rows += range(total, total + result["items"])
        total += result["items"]
        rejected += map(tuple, result["rejected"])
        skipped.update(result["left"])
    seen = len(rows) + len(rejected) + skipped.total()
    return outcome(files, sorted(rows), rejected, seen, dict(skipped))


def _shared(path):
    """A path as other processes have to call it."""
    text = plain(path)
    return text if is_remote(text) else os.path.abspath(os.path.expanduser(text))


def _size_of_parts(count, most, actors):
    """Items per part: as many as the user wants, or fewer, so that each actor has several units."""
    even = -(-count // (_UNITS_PER_ACTOR * actors))
    return min(most, max(_LEAST, even))


def _items_part(items):
    """The file of a part of items: the same for the same names and stamps."""
    return f"part-{_hash([items.names, items.stamps])}.parquet"


def _tar_part(tar):
    """The file of a part of a tar: another one once the tar has changed."""
    return f"tar-{_hash([tar.name, tar.stamp])}.parquet"


def _hash(facts):
    """Sixteen hexadecimal digits for lists of texts."""
    return hashlib.sha256(repr([list(fact) for fact in facts]).encode()).hexdigest()[:16]


def _check_written(written, names):
    """Raises InputError if nodes wrote where this machine cannot read."""
    if missing := sorted(set(names) - present_in(written)):
        more = f" and {len(missing) - _SOME} more" if missing[_SOME:] else ""
        raise InputError(
            f"{written.folder}: {', '.join(missing[:_SOME])}{more} did not arrive; OUT must be on "
            "a disk that all nodes share, or in an object store"
        )


def _shares(results):
    """How many items each node encoded, in words."""
    items = Counter()
    for result in results:
        items[result["node"]] += result["items"]
    counts = ", ".join(f"{count:,} items on {node}" for node, count in sorted(items.items()))
    return f"{len(items)} node{'s' * (len(items) > 1)}: {counts}"
