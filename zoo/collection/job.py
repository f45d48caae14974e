"""Encodes a source on this machine, and what is the same everywhere: the job and the manifest."""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from zoo.collection import contents, places
from zoo.collection.encoding import encoder_of
from zoo.collection.shards import (
    JOB,
    MANIFEST,
    Encoded,
    read_notes,
    rejected_name,
    shard_name,
    write_shard,
)
from zoo.collection.work import Work, digest
from zoo.errors import InputError
from zoo.files.atomic import remove_leftovers
from zoo.models import Tower


def begin(folder: Any, pieces: Sequence[Work], identity: dict[str, Any]) -> list[Work]:
    """Writes the job into the folder, and finds the pieces that are not encoded yet.

    Files of this machine that have changed since they were encoded are noticed.

    Args:
        folder: of the shards, here or in an object store.
        pieces: all the work.
        identity: JSON values that say what the shards are of: the model, say.

    Returns:
        The pieces whose shards are not there.

    Raises:
        InputError: if the folder holds shards of other work or of other contents, or cannot be
            written.
    """
    job = job_of(pieces, identity)
    there = {path.rpartition("/")[2] for path in places.matching(folder, "*")}
    if JOB in there:
        before = json.loads(places.read_bytes(places.join(folder, JOB)))
        other = sorted(key for key in job if before.get(key) != job[key])
        if other:
            raise InputError(
                f"{folder}: holds embeddings of other work ({', '.join(other)} differ); choose "
                "another folder, or delete it"
            )
        changed = contents.changed(pieces, shards_of(folder), identity.get("side", "images"))
        if changed:
            raise InputError(
                f"{folder}: holds embeddings of other contents: {some(changed)} changed since; "
                "choose another folder, or delete it"
            )
        if not places.is_remote(folder):
            remove_leftovers(folder)
    else:
        with places.written(places.join(folder, JOB)) as file:
            file.write((json.dumps(job, indent=2) + "\n").encode())
    return [work for work in pieces if shard_name(work.number) not in there]


def job_of(pieces: Sequence[Work], identity: dict[str, Any]) -> dict[str, Any]:
    """What `job.json` says of work."""
    return {**identity, "shards": len(pieces), "work_sha256": digest(pieces)}


def shards_of(folder: Any) -> dict[int, str]:
    """The paths of the shards that are there, by number."""
    paths = places.matching(folder, "shard-*.parquet")
    return {int(path.rpartition("shard-")[2].removesuffix(".parquet")): path for path in paths}


def some(names: Sequence[str]) -> str:
    """A few of many names, for a message."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} others"


def encode(
    pieces: Sequence[Work],
    encoder: Tower | Callable[..., Encoded],
    folder: Any,
    identity: dict[str, Any],
    dtype: str = "float32",
    skip_bad: bool = True,
    progress: bool = True,
) -> None:
    """Encodes on this machine. A shard is whole or not there: a second call goes on behind it.

    Args:
        pieces: the work, see `zoo.collection.work.plan`.
        encoder: a `zoo.Tower`, or a function from a `Work` to an `Encoded`.
        folder: of the shards; see `Collection` for what is in it.
        identity: see `begin`.
        dtype: of the vectors on the disk, `"float32"` or `"float16"`.
        skip_bad: whether items that cannot be read are set aside.
        progress: whether to draw a bar.

    Raises:
        InputError: as `begin`, or, unless `skip_bad`, for an item that cannot be read.
    """
    encoder, left = encoder_of(encoder), begin(folder, pieces, {**identity, "dtype": dtype})
    counted = all(work.count is not None for work in pieces)
    total = sum(work.count for work in pieces) if counted else len(pieces)
    done = sum(work.count for work in left) if counted else len(left)
    with bar(progress) as shown:
        task = shown.add_task("encoding", total=total, completed=total - done)
        for work in left:
            if counted:
                encoded = encoder(work, lambda count: shown.advance(task, count))
            else:
                encoded = encoder(work)
                shown.advance(task)
            if encoded.rejected and not skip_bad:
                name, reason = encoded.rejected[0]
                raise InputError(
                    f"{name}: {reason} ({len(encoded.rejected)} of the "
                    f"{len(encoded.rejected) + len(encoded.names)} items of a shard cannot be "
                    "read; --skip-bad leaves them out)"
                )
            write_shard(folder, work.number, encoded, dtype)
    finish(folder, pieces)


def finish(folder: Any, pieces: Sequence[Work]) -> dict[str, Any]:
    """Writes the manifest, when all shards are there.

    Returns:
        The manifest: the job, `items`, `rejected`, and `files` with both numbers of each shard.

    Raises:
        InputError: if a shard is missing, or if nothing could be read at all.
    """
    there = {path.rpartition("/")[2] for path in places.matching(folder, "shard-*")}
    missing = [work.number for work in pieces if shard_name(work.number) not in there]
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(pieces)} shards are missing, {missing[:3]} …; "
            "encode again, which goes on with them"
        )
    names = [shard_name(work.number) for work in pieces]
    with ThreadPoolExecutor(min(32, 2 * (os.cpu_count() or 1))) as pool:
        notes = list(pool.map(lambda name: read_notes(places.join(folder, name)), names))
    job = json.loads(places.read_bytes(places.join(folder, JOB)))
    files = [{"file": name, **note} for name, note in zip(names, notes, strict=True)]
    sums = {key: sum(note[key] for note in notes) for key in ("items", "rejected")}
    if not sums["items"]:
        number = next(w.number for w, note in zip(pieces, notes, strict=True) if note["rejected"])
        (first, *_) = places.read_bytes(places.join(folder, rejected_name(number))).splitlines()
        first = json.loads(first)
        raise InputError(
            f"{first['name']}: {first['reason']}; none of the {sums['rejected']} items can be read"
        )
    manifest = {**job, **sums, "files": files}
    with places.written(places.join(folder, MANIFEST)) as file:
        file.write((json.dumps(manifest, indent=2) + "\n").encode())
    return manifest


def bar(shown: bool) -> Progress:
    """A progress bar with a count and the time that is left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        disable=not shown,
    )
