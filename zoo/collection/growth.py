"""Shards that follow their source: what is new or changed is encoded, and nothing else."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zoo.collection import contents
from zoo.collection.encoding import encoder_of
from zoo.collection.job import encode, job_of, shards_of, some
from zoo.collection.shards import JOB, Collection, Encoded
from zoo.collection.work import CONTAINER, Work
from zoo.errors import InputError
from zoo.files.json_files import read_object
from zoo.models import Tower

SHARDS = "embeddings"
_FOLDER = re.compile(rf"{SHARDS}(?:-(\d+))?")


def follow(
    out: Path,
    pieces: Sequence[Work],
    encoder: Tower | Callable[..., Encoded],
    identity: dict[str, Any],
    dtype: str = "float32",
    skip_bad: bool = True,
    progress: bool = True,
    checksum: bool = False,
) -> Collection:
    """The shards of a source as it is now, in a folder below `out`.

    Folders are `embeddings`, `embeddings-2` and so on. One that is of this work goes on where it
    was stopped. Else a new one is written, with the vectors of earlier ones where items are the
    same: those stay until the caller takes them away.

    Args:
        out: a folder of this machine.
        pieces, encoder, identity, dtype, skip_bad, progress: as of `zoo.collection.encode`.
        checksum: whether contents are compared whatever the size and times of a file say.

    Raises:
        InputError: as `zoo.collection.encode`.
    """
    identity = {**identity, "dtype": dtype}
    job, side = job_of(pieces, identity), identity.get("side", "images")
    folders = {folder: _job(folder) for folder in shard_folders(out)}
    fitting = [f for f, own in folders.items() if own.items() >= identity.items()]
    known = contents.Known([p for f in fitting for p in shards_of(f).values()], side, checksum)
    target = None
    for folder in fitting:
        if folders[folder] == job and not contents.changed(
            pieces, shards_of(folder), side, checksum
        ):
            target = folder
    if target is None:
        number = max(map(_number, folders), default=0) + 1
        target = out / (SHARDS if number == 1 else f"{SHARDS}-{number}")
        if folders:
            print(f"{out}: {_difference(pieces, known, identity, folders)}")
    encode(
        pieces,
        contents.reusing(encoder_of(encoder), known),
        target,
        identity,
        dtype,
        skip_bad,
        progress,
    )
    return Collection(target)


def shard_folders(out: Path) -> list[Path]:
    """The folders of shards below `out`, the oldest first."""
    if not out.is_dir():
        return []
    return sorted((p for p in out.iterdir() if _FOLDER.fullmatch(p.name)), key=_number)


def _number(folder):
    return int(_FOLDER.fullmatch(folder.name)[1] or 1)


def _job(folder):
    try:
        return read_object(folder / JOB)
    except InputError:  # killed before it was written, or of something else
        return {}


def _difference(pieces, known, identity, folders):
    """What is other than in the folders that are there, in words."""
    last = folders[max(folders, key=_number)]
    if not known.names:
        other = sorted(key for key in identity if last.get(key) != identity[key])
        if "model_sha256" in other:
            return "the model's weights are others: everything is encoded again"
        return f"{', '.join(other) or 'the items'} changed: everything is encoded again"
    if pieces[0].kind == CONTAINER:
        new = [work.path for work in pieces if known.container(work) is None]
        return f"{len(new):,} of {len(pieces):,} files are new or have changed: {some(new)}"
    new, changed, names = [], [], set()
    for work in pieces:
        names.update(work.names)
        for name, entry in zip(work.names, known.find(work), strict=True):
            if entry is None:
                (changed if name in known.names else new).append(name)
    gone = len(known.names - names)
    said = f"{len(new):,} new, {len(changed):,} changed, {gone:,} gone"
    return said + (f"; changed: {some(changed)}" if changed else "")
