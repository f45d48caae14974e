"""Encodes by Beam on the cores of this machine, and goes on where a worker dies.

Beam's local runner starts worker processes but waits for ever for one that was killed. So it runs
in a process of its own, which ends when one of its workers does, and is started again for the
shards that are left.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from zoo.collection import places
from zoo.collection.job import bar, begin, finish
from zoo.collection.work import Work
from zoo.errors import InputError, require

_WORKER_DIED = 75  # the exit code of such a process, sysexits' EX_TEMPFAIL
_LAST_LINES = 30  # of what a process printed that failed
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
        model, side, batch_size: as of `Encoder.load`.
        folder: of the shards.
        workers: how many processes.

    Returns:
        The manifest.

    Raises:
        InputError: as `zoo.collection.encode`, or if workers die again and again before one shard
            is done.
    """
    require("apache_beam", extra="beam")
    in_vain, left = 0, begin(folder, pieces, {**identity, "dtype": dtype})
    job = {"model": str(model), "side": side, "folder": str(folder), "workers": workers}
    job |= {"batch_size": batch_size, "dtype": dtype}
    with bar(progress) as shown:
        task = shown.add_task("encoding", total=len(pieces), completed=len(pieces) - len(left))

        def look():
            there = len(places.matching(folder, "shard-*"))
            shown.update(task, completed=there)
            return len(pieces) - there

        while left:
            before, code = len(left), _attempt(job, left, look)
            left = begin(folder, pieces, {**identity, "dtype": dtype})
            look()
            if code not in (0, _WORKER_DIED):
                raise InputError(f"{folder}: the worker's error is above; nothing is lost")
            in_vain = 0 if len(left) < before else in_vain + 1
            if in_vain == _MOST_IN_VAIN:
                raise InputError(
                    f"{folder}: workers were killed {in_vain} times before a shard was done; is "
                    "there enough memory for so many (--workers)?"
                )
    return finish(folder, pieces)


def _attempt(job, left, look):
    """The exit code of one process that runs the pipeline, with all of its workers ended."""
    with tempfile.TemporaryFile() as output:  # where one is killed the others print tracebacks
        code = _run({**job, "work": [vars(piece) for piece in left]}, output, look)
        if code not in (0, _WORKER_DIED):
            output.seek(0)
            lines = output.read().decode(errors="replace").splitlines()
            print("\n".join(lines[-_LAST_LINES:]), file=sys.stderr)
    return code


def _run(job, output, look):
    threads = {name: "1" for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "zoo.collection.direct"],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env={**os.environ, "TF_NUM_INTEROP_THREADS": "2", **threads},
        start_new_session=True,
    )
    try:
        process.stdin.write(json.dumps(job).encode())
        process.stdin.close()
        while True:
            try:
                return process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                look()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> None:
    """Runs the pipeline of a job that stands on the standard input."""
    import logging

    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

    from zoo.collection.beam import EncoderHandler, pipeline_of

    # Its threads report a worker's end by an error of theirs, and the main thread waits on.
    threading.excepthook = lambda raised: os._exit(_WORKER_DIED)
    logging.getLogger().setLevel(logging.ERROR)
    job = json.load(sys.stdin)
    pieces = [
        Work(**{key: tuple(v) if isinstance(v, list) else v for key, v in piece.items()})
        for piece in job["work"]
    ]
    mode = "in_memory" if job["workers"] == 1 else "multi_processing"
    options = PipelineOptions(
        direct_num_workers=job["workers"],
        direct_running_mode=mode,
        default_sdk_harness_log_level="ERROR",
    )
    # `DirectRunner` would first try to download Prism.
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=options)
    handler = EncoderHandler(job["model"], job["side"], job["batch_size"])
    pipeline_of(pipeline, pieces, handler, job["folder"], job["dtype"])
    pipeline.run().wait_until_finish()


if __name__ == "__main__":
    main()
