"""Encodes the items of a source on the nodes of a Ray cluster, into the parts of `encode`.

The driver lists the source and cuts what is new into units, each of which becomes one part. An
actor per CPU, or per GPU for a Keras model, opens the tower once and writes whole parts. A part is
named by a hash of its items, so a unit that runs twice, since its node died, writes the same file.
Vectors never pass through the driver.
"""

import contextlib
import hashlib
import importlib.metadata
import itertools
import logging
import os
import pickle
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from halo_search import presets
from halo_search.collection import parts
from halo_search.collection.encoding import (
    DTYPES,
    PART_SIZE,
    Known,
    begin,
    check_part_size,
    encode_items,
    outcome,
    part_files,
    progress_bar,
)
from halo_search.collection.listing import Tar, read_listing
from halo_search.collection.parts import MANIFEST, Collection, Encoded
from halo_search.collection.sources import PICTURES, TEXTS, Items, members_of
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.files.stores import (
    is_remote,
    open_file,
    plain,
    present_in,
    write_file,
    written_in,
)
from halo_search.towers import open_tower
from halo_search.towers.onnx import OnnxTower

VERSION = importlib.metadata.version("halo-zoo")  # which all nodes must have

AUTO = "auto"
_UNITS_PER_ACTOR = 8  # at least, so that nodes end together, and a dead one loses little
_LEAST = 64  # items that are worth a part
_AT_ONCE = 8  # batches of a tar whose files are in memory together
_REQUESTS = 8  # to a store, that wait at a time
_MOST_BLOCKS = 4096
_SOME = 3  # names in a message


@dataclass(frozen=True)
class Unit:
    """What becomes one part: some items, or a tar."""

    part: str
    items: Items | None = None
    tar: Tar | None = None


@dataclass(frozen=True)
class Job:
    """What every actor has to know."""

    model: str
    model_sha256: str | None
    side: str
    batch_size: int
    folder: str
    dtype: str
    source: str
    version: str = VERSION


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

    found = encode_on_cluster("s3://bucket/photos", "photos_pfe", "s3://bucket/parts")
    found.manifest["count"]  # {"seen": …, "taken": …, "left": {…}}
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
    _ray_data()
    model = presets.absolute(model)
    tower = open_tower(model, side, batch_size)
    source, folder = _shared(source), _shared(folder)
    items, tars = read_listing(source, side, column, names, tower.reads == "vectors")
    written = written_in(folder, MANIFEST)
    identity = {"model": str(model), "model_sha256": tower.model_sha256, "side": side}
    before = begin(written, folder, {**identity, "dtype": dtype})

    tar_units = [Unit(_tar_part(tar), tar=tar) for tar in tars]
    there = part_files(written.names & present_in(written), before)
    known = Known(folder, there, {unit.part for unit in tar_units})
    kept, rejected, new = known.of(items)
    if "parts" in before and (new or known.gone):
        print(f"{folder}: {known.difference(items, new)}")
    waiting = [unit for unit in tar_units if unit.part not in there]
    results = []
    if new or waiting:
        job = Job(model, tower.model_sha256, side, batch_size, folder, dtype, source)
        needs_gpu = not isinstance(tower, OnnxTower)
        with connected(address) as cluster, progress_bar(progress) as shown:
            actors, resources = cluster.actors(needs_gpu)
            size = _size_of_parts(len(new), part_size, actors)
            chunks = [new[start : start + size] for start in range(0, len(new), size)]
            chunks = [items.take(rows) for rows in chunks]
            units = [Unit(_items_part(chunk), items=chunk) for chunk in chunks] + waiting
            written.claim(*(unit.part for unit in units))
            total = None if tars else len(items)  # nobody knows how many items a tar holds
            task = shown.add_task("encoding", total=total, completed=len(items) - len(new))
            for result in run(job, units, resources):
                results.append(result)
                shown.advance(task, result["seen"])
        results.sort(key=lambda result: result["number"])
        _check_written(written, [result["part"] for result in results])
        print(f"{folder}: encoded on {_shares(results)}")

    files, total = list(known.files), known.total
    kept, rejected = [*kept, *known.kept_of_tars], [*rejected, *known.rejected_of_tars]
    left = Counter(items.left) + known.left_of_tars
    for result in results:
        files.append({"file": result["part"], "items": result["items"]})
        kept += range(total, total + result["items"])
        total += result["items"]
        rejected += map(tuple, result["rejected"])
        left.update(result["left"])
    seen = len(kept) + len(rejected) + left.total()
    ended = outcome(files, sorted(kept), rejected, seen, dict(left))
    written.write({**written.content, **ended})
    return Collection(folder)


def run(job: Job, units: Sequence[Unit], resources: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Encodes units on the cluster that this process is connected to, and yields what became of
    each, in the order in which they end."""
    ray_data = _ray_data()
    context = ray_data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    # The job travels with each unit: constructor arguments would be lost with the node that holds
    # them.
    rows = [{"number": n, "unit": pickle.dumps((job, unit))} for n, unit in enumerate(units)]
    dataset = ray_data.from_items(rows, override_num_blocks=min(len(rows), _MOST_BLOCKS))
    pool = ray_data.ActorPoolStrategy(min_size=1, max_size=len(units))
    dataset = dataset.map(Encode, compute=pool, **resources)
    try:
        for row in dataset.iter_rows():
            result = pickle.loads(row["result"])
            if "error" in result:
                kind = MissingPackageError if result["is_missing"] else InputError
                raise kind(result["error"])
            yield result
    except (InputError, MissingPackageError):
        raise
    except Exception as error:
        raise _in_a_sentence(error) from error


class Encode:
    """An actor: opens the tower with its first unit, and encodes units, each to its part."""

    def __init__(self):
        self._tower = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """What became of one unit, pickled."""
        job, unit = pickle.loads(row["unit"])
        try:
            result = {"number": row["number"], "part": unit.part, **self._encoded(job, unit)}
        except (InputError, MissingPackageError) as error:
            is_missing = isinstance(error, MissingPackageError)
            result = {"error": f"{error} (on node {_node()})", "is_missing": is_missing}
        return {"result": pickle.dumps(result)}

    def _encoded(self, job, unit):
        if self._tower is None:
            self._tower = _open(job)
        encoded = encode_unit(self._tower, unit)
        file = BytesIO()
        parts.write_part(file, encoded, job.dtype, unit.items)
        write_file(f"{job.folder}/{unit.part}", file.getvalue())
        count = len(encoded.names)
        result = {"items": count, "rejected": encoded.rejected, "left": encoded.left}
        return {**result, "seen": count + len(encoded.rejected), "node": _node()}


def encode_unit(tower: Any, unit: Unit) -> Encoded:
    """What became of the items of a unit, or of the members of its tar, some batches at once."""
    kind, encoded, left = PICTURES if tower.side == "images" else TEXTS, [], Counter()
    at_once = _AT_ONCE * tower.batch_size
    if unit.tar is not None:
        contents = members_of(unit.tar.path, kind, left)
    elif unit.items.kind == PICTURES and any(map(is_remote, unit.items.values)):
        contents = _fetched(unit.items, at_once)
    else:
        return encode_items(tower, unit.items)
    while batch := list(itertools.islice(contents, at_once)):
        bad = [(name, reason) for name, _, reason in batch if reason is not None]
        encoded.append(Encoded([], {}, None, bad))
        if good := [(name, value) for name, value, reason in batch if reason is None]:
            names, values = zip(*good, strict=True)
            encoded.append(encode_items(tower, Items(kind, names, values, names)))
    return replace(parts.merged(encoded), left=dict(left))


def _open(job):
    """The tower of a job on this node. Raises InputError if the node lacks what the job needs."""
    if job.version != VERSION:
        raise InputError(f"halo-zoo {VERSION}, not {job.version}, is installed")
    for what, path in (("source", _root(job.source)), ("OUT", f"{job.folder}/{MANIFEST}")):
        if not is_remote(path) and not os.path.exists(path):
            raise InputError(
                f"{path} does not exist; {what} must be on a disk that all nodes share, or in "
                "an object store"
            )
    # A Keras tower takes as many threads as the actor has CPUs, as an ONNX tower does.
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    tower = open_tower(job.model, job.side, job.batch_size)
    if tower.model_sha256 != job.model_sha256:
        raise InputError(f"--model {job.model}: another model lies there")
    return tower


def _fetched(items, at_once):
    """`(name, bytes, None)` of pictures in a store, or `(name, None, why not)`, in order."""

    def fetch(name, path):
        try:
            with open_file(path) as file:
                return name, file.read(), None
        except InputError as error:
            return name, None, str(error).removeprefix(f"{path}: ")

    with ThreadPoolExecutor(_REQUESTS) as pool:
        for start in range(0, len(items), at_once):
            rows = slice(start, start + at_once)
            yield from pool.map(fetch, items.names[rows], items.values[rows])


class Cluster:
    """The Ray cluster that this process is connected to."""

    def __init__(self, ray: Any):
        self._ray = ray

    def actors(self, may_use_gpu: bool) -> tuple[int, dict[str, float]]:
        """How many actors there is room for now, and what each needs."""
        resources = self._ray.cluster_resources()
        if may_use_gpu and resources.get("GPU", 0) >= 1:
            return int(resources["GPU"]), {"num_cpus": 1, "num_gpus": 1}
        return max(1, int(resources.get("CPU", 1))), {"num_cpus": 1}


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Yields the cluster at an address, see `encode_on_cluster`. A connection that exists is used,
    and stays. Raises InputError if no cluster answers."""
    _ray_data()
    ray = require("ray", extra="cluster")
    if ray.is_initialized():
        yield Cluster(ray)
        return
    options = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=None if address == AUTO else address, **options)
    except Exception as error:  # a refused connection, a wrong address, other versions of Ray
        raise InputError(f"--cluster {address}: {_one_line(error)}") from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _ray_data():
    # Ray sends usage statistics by default, and reads this once.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return require("ray.data", extra="cluster")


def _shared(path):
    """A path as other processes have to call it."""
    text = plain(path)
    return text if is_remote(text) else os.path.abspath(os.path.expanduser(text))


def _root(source):
    """The folder or file of a source that must exist on a node."""
    head = source
    while any(sign in head for sign in "*?[") and not os.path.exists(head):
        head = os.path.dirname(head)
    return head


def _size_of_parts(count, most, actors):
    even = -(-count // (_UNITS_PER_ACTOR * actors))
    return min(most, max(_LEAST, even))


def _items_part(items):
    return f"part-{_hash([items.names, items.stamps])}.parquet"


def _tar_part(tar):
    return f"tar-{_hash([tar.name, tar.stamp])}.parquet"


def _hash(facts):
    return hashlib.sha256(repr([list(fact) for fact in facts]).encode()).hexdigest()[:16]


def _check_written(written, names):
    """Raises InputError if nodes wrote where this machine cannot read."""
    if missing := sorted(set(names) - present_in(written)):
        more = f" and {len(missing) - _SOME} more" if missing[_SOME:] else ""
        raise InputError(
            f"{written.folder}: {', '.join(missing[:_SOME])}{more} did not arrive; OUT must be on "
            "a disk that all nodes share, or in an object store"
        )


def _node():
    """The address and the number of this node, which share a machine in tests only."""
    context = require("ray", extra="cluster").get_runtime_context()
    return f"{socket.gethostname()}/{context.get_node_id()[:6]}"


def _in_a_sentence(error):
    """An error of Ray's own, or of code on a node, as the user can act on it."""
    cause, text = getattr(error, "cause", None) or error, _one_line(error)
    missing = cause if isinstance(cause, ModuleNotFoundError) else None
    if missing is not None or "No module named" in text:
        return MissingPackageError(
            f"--cluster: a node cannot import a package ({_one_line(missing or error)}); install "
            'the same "halo-zoo[cluster]" on all nodes'
        )
    return InputError(f"--cluster: the job failed: {text}")


def _shares(results):
    """How many items each node encoded, in words."""
    items = Counter()
    for result in results:
        items[result["node"]] += result["items"]
    counts = ", ".join(f"{count:,} items on {node}" for node, count in sorted(items.items()))
    return f"{len(items)} node{'s' * (len(items) > 1)}: {counts}"


def _one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
