"""Encodes by worker processes on this machine, and continues if one of them dies."""

import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing import connection
from typing import Any

from zoo.collection import places
from zoo.collection.encoding import encode_work
from zoo.collection.job import bar, begin, finish
from zoo.collection.shards import shard_name, write_shard
from zoo.collection.work import Work
from zoo.errors import InputError
from zoo.models import Tower

_MOST_IN_VAIN = 3  # attempts in which no shard was written


def encode_here(
    pieces: Sequence[Work],
    model: Any,
    side: str,
    folder: Any,
    identity: dict[str, Any],
    workers: int,
    batch_size: int = 64,
    dtype: str = "float32",
    progress: bool = True,
) -> dict[str, Any]:
    """Encodes by worker processes, each with one thread.

    Args:
        pieces, identity, dtype, progress: as of `zoo.collection.encode`.
        model, side, batch_size: as of `zoo.Tower`.
        folder: of the shards.
        workers: how many processes.

    Returns:
        The manifest.

    Raises:
        InputError: as `zoo.collection.encode`, or if workers die again and again before one shard
            is done.
    """
    if workers < 1:
        raise InputError(f"--workers must be at least 1; received {workers}")
    in_vain, left = 0, begin(folder, pieces, {**identity, "dtype": dtype})
    job = {"model": str(model), "side": side, "batch_size": batch_size}
    job |= {"folder": str(folder), "dtype": dtype}
    with bar(progress) as shown:
        task = shown.add_task("encoding", total=len(pieces), completed=len(pieces) - len(left))

        def look():
            there = len(places.matching(folder, "shard-*"))
            shown.update(task, completed=there)
            return len(pieces) - there

        while left:
            before, code = len(left), _attempt(job, left, workers, look)
            left = begin(folder, pieces, {**identity, "dtype": dtype})
            look()
            if code > 0:
                raise InputError(f"{folder}: the worker's error is above; nothing is lost")
            in_vain = 0 if len(left) < before else in_vain + 1
            if in_vain == _MOST_IN_VAIN:
                raise InputError(
                    f"{folder}: workers were killed {in_vain} times before a shard was done; is "
                    "there enough memory for so many (--workers)?"
                )
    return finish(folder, pieces)


def _attempt(job, left, workers, look):
    """The exit code of worker processes that share the work: 0, that of an error, or −signal.

    Another takes the place of a killed one at once if that one has written a shard; the others go
    on meanwhile.
    """
    context = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork
    count, shares, codes = min(workers, len(left)), {}, [0]

    def start(share):
        process = context.Process(target=_work, args=(job, share), daemon=True)
        process.start()
        shares[process] = share

    try:
        for number in range(count):
            start(left[number::count])
        while shares and max(codes) <= 0:
            connection.wait([process.sentinel for process in shares], 0.5)
            for process in [process for process in shares if not process.is_alive()]:
                share, code = shares.pop(process), process.exitcode
                rest = _not_there(job["folder"], share) if code < 0 else []
                if 0 < len(rest) < len(share):
                    start(rest)
                else:
                    codes.append(code if code > 0 or rest else 0)
            look()
    finally:
        for process in shares:
            process.kill()
            process.join()
    return max((code for code in codes if code), default=0)


def _not_there(folder, pieces):
    there = {path.rpartition("/")[2] for path in places.matching(folder, "shard-*")}
    return [work for work in pieces if shard_name(work.number) not in there]


def _work(job, pieces):
    """What a worker does: it encodes its pieces, one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="2")
    tower = Tower(job["model"], job["side"], job["batch_size"])
    for work in pieces:
        write_shard(job["folder"], work.number, encode_work(tower, work), job["dtype"])
