"""What an actor of a cluster does: opens the tower of a job, and encodes units into parts."""

import importlib.metadata
import itertools
import os
import pickle
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from halo_search.collection import parts
from halo_search.collection.encoding import encode_items
from halo_search.collection.listing import Tar
from halo_search.collection.parts import MANIFEST, Encoded
from halo_search.collection.sources import PICTURES, TEXTS, Items, members_of
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.files.stores import is_remote, open_file, write_file
from halo_search.towers import open_tower

VERSION = importlib.metadata.version("halo-zoo")  # which all nodes must have
_AT_ONCE = 8  # batches of a tar whose files are in memory together
_REQUESTS = 8  # to a store, that wait at a time


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
        """Encodes a unit, writes its part, and returns its counts."""
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
    kind, encoded, skipped = PICTURES if tower.side == "images" else TEXTS, [], Counter()
    at_once = _AT_ONCE * tower.batch_size
    if unit.tar is not None:
        contents = members_of(unit.tar.path, kind, skipped)
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
    return replace(parts.merged(encoded), left=dict(skipped))


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


def _root(source):
    """The folder or file of a source that must exist on a node."""
    head = source
    while any(sign in head for sign in "*?[") and not os.path.exists(head):
        head = os.path.dirname(head)
    return head


def _node():
    """The address and the number of this node, which share a machine in tests only."""
    context = require("ray", extra="cluster").get_runtime_context()
    return f"{socket.gethostname()}/{context.get_node_id()[:6]}"
