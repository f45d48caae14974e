"""A question from the shell, and a server's first answer.

`python -m benchmarks question`. Every command is a process of its own; its CPU time and its largest
memory are what the kernel counts. Modules have their bytecode, as an installed package has.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.serve import CODE, ask, cpu_seconds, served
from halo_search.cli.search import main as search
from halo_search.photos import FOLDER, packaged_photos

MODEL, REPEATS, SEED = "photos_pfe", 3, 0
QUESTION = "a dog on a beach"
# The server, which also adds up the CPU time of its tower. Alone, in a loop, the tower would find
# its weights in the processor's cache, and take a tenth less.
SERVER = """
import os, pathlib, time

from halo_search.towers import Tower

forward, seconds, file = Tower.of_texts, [], pathlib.Path({file!r})


def timed(tower, texts):
    before = time.process_time()
    found = forward(tower, texts)
    seconds.append(time.process_time() - before)
    if len(seconds) % 100 == 0:  # what ends a server lets nothing run at its end
        file.write_text(str(sum(seconds[1:]) / len(seconds[1:])))
    return found


Tower.of_texts = timed

import halo_search.cli.main

halo_search.cli.main.main()
"""


def main():
    report = Report(f"a question to {len(packaged_photos())} photos, {MODEL}", SEED)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "index"
        search(["build", str(FOLDER), str(folder), "--model", MODEL, "--include-training"])
        cpu, megabytes, wall = costs(folder)
        report.add(of="`halo search query`, CPU", seconds=cpu, megabytes=megabytes)
        report.add(of="the same, wall clock", seconds=wall)
        file, start = Path(home) / "tower", time.perf_counter()
        with served(str(folder), SERVER.format(file=str(file))) as (address, process):
            ask(address, QUESTION)
            report.add(
                of="`serve`, first answer after its start", seconds=time.perf_counter() - start
            )
            each, keep_alive = (of_answer(address, process.pid, keeps) for keeps in (False, True))
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        tower = float(file.read_text())
        report.add(of="`serve`, CPU of an answer at batch 1", seconds=each[0])
        report.add(of="the same, wall clock", seconds=each[1])
        report.add(of="over one connection that is kept", seconds=keep_alive[0])
        report.add(of="the same, wall clock, kept", seconds=keep_alive[1])
        report.add(of="of these the tower", seconds=tower)
        report.add(of="beyond the tower", seconds=each[0] - tower)
        report.add(of="beyond the tower, kept", seconds=keep_alive[0] - tower)
    return report


def of_answer(address, server, keeps, count=500):
    """`(CPU seconds of the server, seconds)` of an answer, over a connection of its own or one."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    before, start = cpu_seconds(server), time.perf_counter()
    for n in range(count):
        if not keeps:
            connection.close()
        body = json.dumps({"question": f"{QUESTION}, number {n}"})
        connection.request("POST", "/ask", body, {"Content-Type": "application/json"})
        json.load(connection.getresponse())
    connection.close()
    return (cpu_seconds(server) - before) / count, (time.perf_counter() - start) / count


def costs(folder):
    """Medians of `(CPU seconds, MB, seconds)` of the command."""
    command = [sys.executable, "-c", CODE, "search", "query", str(folder), QUESTION]
    rows = []
    for _ in range(REPEATS + 1):  # the first one reads the disk
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
        )
        peak, ended = 0, 0
        while not ended:  # what the system keeps of the end has this process's own memory in it
            peak = max(peak, high_water(process.pid))
            time.sleep(0.01)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
        cpu = usage.ru_utime + usage.ru_stime
        rows.append((cpu, peak / 1024, time.perf_counter() - start))
    return tuple(np.median(rows[1:], axis=0))


def environment():
    """This process', in which modules have their bytecode."""
    return {n: x for n, x in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}


def high_water(number):
    """The most memory that a process has had, in KiB."""
    with open(f"/proc/{number}/status", encoding="ascii") as file:
        values = [line.split()[1] for line in file if line.startswith("VmHWM")]
    return int(values[0]) if values else 0
