"""A question from the shell, a server's first answer: by the index's ONNX tower and by TensorFlow.

`python -m benchmarks question`. Every command is a process of its own; its CPU time and its largest
memory are what the kernel counts. `halo search query INDEX TEXT --model photos_pfe` opens the model
with TensorFlow, the same command without `--model` uses the tower beside the index.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import zoo
from benchmarks.report import Report
from benchmarks.serve import ask, cpu_seconds, served
from halo_zoo.search import main as search
from zoo.retriever import Retriever

MODEL, REPEATS, SEED = "photos_pfe", 3, 0
QUESTION = "a dog on a beach"
CODE = "import halo_zoo; halo_zoo.main()"


def main():
    photos = Path(zoo.__file__).parent / "photos"
    report = Report(f"a question to {len(list(photos.glob('*.jpg')))} photos, {MODEL}", SEED)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "index"
        search(["build", str(photos), str(folder), "--model", MODEL, "--include-training"])
        ways = {"the tower beside the index": [], "TensorFlow": ["--model", MODEL]}
        found = {name: costs(folder, flags) for name, flags in ways.items()}
        for name, (cpu, megabytes, wall) in found.items():
            report.add(of=f"`halo search query`, {name}", seconds=cpu, megabytes=megabytes)
            report.add(of=f"the same, wall clock, {name}", seconds=wall)
        own, other = found.values()
        report.notes.append(
            f"ratio of CPU {other[0] / own[0]:.1f}, of memory {other[1] / own[1]:.1f}"
        )
        start = time.perf_counter()
        with served(str(folder)) as (address, process):
            ask(address, QUESTION)
            report.add(
                of="`serve`, first answer after its start", seconds=time.perf_counter() - start
            )
            before, count = cpu_seconds(process.pid), 500
            for n in range(count):
                ask(address, f"{QUESTION}, number {n}")
            answer = (cpu_seconds(process.pid) - before) / count
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        tower = of_tower(folder)
        report.add(of="`serve`, CPU of an answer at batch 1", seconds=answer)
        report.add(of="of it the tower", seconds=tower)
        report.add(of="beyond the tower", seconds=answer - tower)
    return report


def costs(folder, flags):
    """Medians of `(CPU seconds, MB, seconds)` of the command."""
    command = [sys.executable, "-c", CODE, "search", "query", str(folder), QUESTION, *flags]
    rows = []
    for _ in range(REPEATS + 1):  # the first one reads the disk
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peak, ended = 0, 0
        while not ended:  # what the system keeps of the end has this process's own memory in it
            peak = max(peak, _high_water(process.pid))
            time.sleep(0.01)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
        cpu = usage.ru_utime + usage.ru_stime
        rows.append((cpu, peak / 1024, time.perf_counter() - start))
    return tuple(np.median(rows[1:], axis=0))


def _high_water(number):
    """The most memory that a process has had, in KiB."""
    with open(f"/proc/{number}/status", encoding="ascii") as file:
        found = [line.split()[1] for line in file if line.startswith("VmHWM")]
    return int(found[0]) if found else 0


def of_tower(folder, count=300):
    """CPU seconds of the tower alone for one question."""
    tower = Retriever.load(folder).tower("captions")
    tower.of_texts([QUESTION])
    before = resource.getrusage(resource.RUSAGE_SELF)
    for n in range(count):
        tower.of_texts([f"{QUESTION}, number {n}"])
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count
