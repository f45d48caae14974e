"""`halo search serve` under load: 20 clients of 50 questions each, over the packaged photos.

`python -m benchmarks serve`. The server is a process of its own; it shares the cores with its
clients. Every question is asked once, so that no answer was kept.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import zoo
from benchmarks.report import Report

CLIENTS, QUESTIONS_EACH, SEED = 20, 50, 0
CODE = "from halo_search.cli.main import main; main()"  # in a process of its own
SUBJECTS = "a dog", "two children", "a man in a red shirt", "a bus", "a cat", "an old woman"
PLACES = "on the beach", "in the snow", "by a window", "in a kitchen", "near a river", "at night"


def main():
    report = Report(f"{CLIENTS} clients × {QUESTIONS_EACH} questions, 170 photos, photos_pfe", SEED)
    with tempfile.TemporaryDirectory() as folder:
        zoo.Retriever.build("photos_pfe", zoo.data.packaged_photos()).save(folder)
        start = time.perf_counter()
        with served(folder) as (address, process):
            ask(address, "a question to begin with")
            report.add(of="first answer after the start", seconds=time.perf_counter() - start)
            report.rows += under_load(address, process.pid)
            process.send_signal(signal.SIGTERM)
            report.notes.append(f"SIGTERM: exit code {process.wait(60)}")
    return report


@contextlib.contextmanager
def served(folder, code=CODE):
    """`(address, process)` of a server of a folder, which ends with the block."""
    command = [sys.executable, "-c", code, "search", "serve", folder, "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://\S+", process.stdout.readline()).group(), process
        finally:
            process.kill()


def under_load(address, server, answered=None):
    """Rows of the report.

    Args:
        address: of the server.
        server: its process's number.
        answered: a function of `(address, question)`: whether a question is answered; default:
            by `ask`.
    """
    answered = answered or answers
    questions = (
        np.random.default_rng(SEED)
        .permutation(
            [
                f"{subject} {place}, number {n}"
                for subject in SUBJECTS
                for place in PLACES
                for n in range(28)
            ]
        )[: CLIENTS * QUESTIONS_EACH]
        .reshape(CLIENTS, QUESTIONS_EACH)
    )
    before, start = cpu_seconds(server), time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        seconds = np.concatenate(
            list(pool.map(lambda asked: visit(address, asked, answered), questions))
        )
    wall = time.perf_counter() - start
    failed = np.isnan(seconds)
    middle, high = np.nanpercentile(seconds, (50, 95))
    return [
        {"of": "an answer, median", "seconds": float(middle)},
        {"of": "an answer, p95", "seconds": float(high)},
        {"of": "an answer, slowest", "seconds": float(np.nanmax(seconds))},
        {"of": "CPU of an answer", "seconds": (cpu_seconds(server) - before) / len(seconds)},
        {"of": f"all {len(seconds):,}, of which {failed.sum()} failed", "seconds": wall},
    ]


def cpu_seconds(pid):
    """CPU seconds of another process, as Linux counts them."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def visit(address, questions, answered):
    """Seconds of each answer; NaN of one that failed."""
    latencies = []
    for question in questions:
        start = time.perf_counter()
        try:
            right = answered(address, question)
        except OSError:
            right = False
        latencies.append(time.perf_counter() - start if right else np.nan)
    return np.array(latencies)


def answers(address, question):
    return ask(address, question)["question"] == question


def ask(address, question):
    body = json.dumps({"question": str(question)}).encode()
    request = urllib.request.Request(f"{address}/ask", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
