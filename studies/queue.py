"""A queue of runs: finished ones are left out, stopped ones resume, several run at a time."""

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from zoo.errors import InputError
from zoo.files import RunFolder


class Task(NamedTuple):
    """A run in a process of its own."""

    out: Path  # its run folder, which says whether it is finished; the log lies beside it
    command: Sequence[str]  # of the process
    after: Path | None = None  # the run folder of a task that has to be finished before, or None


def run_all(tasks: Sequence[Task], jobs: int = 1) -> None:
    """Runs unfinished runs, several at a time, and writes the output of each into `OUT.log`."""
    waiting = [task for task in tasks if not RunFolder(task.out).finished]
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    environment = {"TF_NUM_INTRAOP_THREADS": threads, **os.environ}

    def run(task):
        task.out.mkdir(parents=True, exist_ok=True)
        with open(task.out.with_suffix(".log"), "w") as log:
            return subprocess.run(
                task.command, stdout=log, stderr=subprocess.STDOUT, env=environment, check=False
            ).returncode

    codes = {}
    with ThreadPoolExecutor(jobs) as pool:
        for follows in (False, True):
            ready = [task for task in waiting if (task.after is not None) == follows]
            outs = [task.out for task in ready]
            codes |= dict(zip(outs, pool.map(run, ready), strict=True))
    failed = [str(out.with_suffix(".log")) for out, code in codes.items() if code]
    if failed:
        raise InputError(f"{len(failed)} of {len(codes)} runs failed, see {', '.join(failed)}")
