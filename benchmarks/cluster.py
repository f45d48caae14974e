"""Encoding on a Ray cluster of two nodes: equality, shares, processor time, memory, and kills.

Nodes are processes of this machine (`ray.cluster_utils.Cluster`): a head without CPUs, and nodes of
one CPU each. `python -m benchmarks.cluster SCENARIO …` runs some scenarios and prints a JSON line
per result; `python -m benchmarks cluster` runs all of them.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from benchmarks.report import Report
from halo_search import packaged_photos
from halo_search.collection import Collection

SEED, TIMES = 0, 5
PICTURES, CAPTIONS = 2000, (500, 2000, 8000)
BIG, SMALL = "photos_pfe", "toy_birds_pfe"
_MARK, _TICKS = "HALO_BENCHMARK", os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main():
    """All scenarios, a report each."""
    reports = []
    for name, scenario in SCENARIOS.items():
        report = Report(f"{name}: {scenario.__doc__.splitlines()[0]}", SEED)
        with tempfile.TemporaryDirectory() as folder:
            for row in scenario(Path(folder)):
                report.add(**row)
        reports.append(report)
    return reports


def equality(folder, count=PICTURES):
    """Two nodes against the plain command, photos_pfe."""
    photos = copies(folder / "photos", count)
    plain = run_command([photos, folder / "plain", "--model", BIG])
    yield {"run": "plain", **plain.row()}
    with cluster(2) as nodes:
        run_result = run_command(
            [photos, folder / "parts", "--model", BIG, "--cluster", nodes.address]
        )
    yield {
        "run": "two nodes",
        **run_result.row(),
        "largest_difference": largest_difference(folder / "plain", folder / "parts"),
        "nodes": run_result.nodes(),
    }


def overhead(folder, count=PICTURES):
    """`--cluster auto`, which starts Ray, against the plain command, photos_pfe."""
    photos = copies(folder / "photos", count)
    plain = run_command([photos, folder / "plain", "--model", BIG])
    auto = run_command([photos, folder / "auto", "--model", BIG, "--cluster", "auto"])
    ratio = auto.cpu_seconds / plain.cpu_seconds
    yield {"run": "plain", **plain.row()}
    difference = largest_difference(folder / "plain", folder / "auto")
    yield {"run": "auto", **auto.row(), "ratio": ratio, "largest_difference": difference}


def growth(folder, sizes=CAPTIONS):
    """Captions on one and two nodes, photos_pfe: processor time and memory."""
    for nodes in (1, 2):
        with cluster(nodes) as running:
            for count in sizes:
                lines = folder / f"captions-{count}.txt"
                lines.write_text("".join(f"a photo of {n} dogs on grass\n" for n in range(count)))
                out = folder / f"parts-{nodes}-{count}"
                command = [lines, out, "--captions", "--model", BIG, "--cluster", running.address]
                run_result = run_command(command, watch=running.mark)
                assert len(Collection(out)) == count
                yield {"nodes": nodes, "captions": count, **run_result.row()}


def dead_nodes(folder, times=TIMES, count=PICTURES):
    """A node that dies without warning while another is added; some pictures cannot be read."""
    with cluster(2) as nodes:
        for job in jobs_under_way(folder, nodes, times, count):
            nodes.remove(job.draw.randrange(2))
            nodes.add()
            finish(job.process)
            yield {**job.row(), **truth(job.out, count)}


def dead_drivers(folder, times=TIMES, count=PICTURES):
    """A driver that is killed, and its command given again; some pictures cannot be read."""
    with cluster(2) as nodes:
        for job in jobs_under_way(folder, nodes, times, count):
            job.process.send_signal(signal.SIGKILL)
            job.process.wait()
            num_parts = len(list(job.out.glob("part-*.parquet")))
            finish(start_command(job.command))
            yield {**job.row(), "kept": num_parts, **truth(job.out, count)}


class JobUnderWay(NamedTuple):
    """A command that has written some of its parts, at a random moment."""

    time: int  # which of the repetitions
    draw: random.Random  # of what is killed
    command: list
    process: subprocess.Popen
    out: Path
    parts: int

    def row(self):
        return {"time": self.time, "killed_after_parts": self.parts}


def jobs_under_way(folder, nodes, times, count):
    """Yields, `times` times, a `JobUnderWay` over pictures of which some cannot be read."""
    source = mixed(folder / "photos", count)
    for number in range(times):
        draw, out = random.Random(SEED + number), folder / f"parts-{number}"
        command = small_job(source, out, nodes.address)
        process = start_command(command)
        parts = wait_for_parts(out, draw.randrange(1, 10), process)
        yield JobUnderWay(number, draw, command, process, out, parts)


def small_job(source, out, address):
    """The command of the scenarios with kills."""
    return [source, out, "--model", SMALL, "--cluster", address, "--shard-size", "64"]


def copies(folder, count):
    """The packaged photos under other names."""
    folder.mkdir(parents=True)
    photos = [Path(path) for path in packaged_photos()]
    for number in range(count):
        shutil.copyfile(photos[number % len(photos)], folder / f"{number:05d}.jpg")
    return folder


def mixed(folder, count):
    """A table of `count` small photos, and of a slow, a broken, an empty and a missing one."""
    folder.mkdir(parents=True)
    photos = []
    for path in packaged_photos():
        with Image.open(path) as image:
            photos.append(image.convert("RGB").resize((96, 96)))
    names = [f"{number:05d}.jpg" for number in range(count - 1)]
    for number, name in enumerate(names):
        photos[number % len(photos)].save(folder / name)
    photos[0].resize((6000, 6000)).save(folder / "slow.png")
    (folder / "broken.jpg").write_bytes((folder / names[0]).read_bytes()[:-500])
    (folder / "empty.jpg").write_bytes(b"")
    names[count // 2 : count // 2] = ["slow.png", "broken.jpg", "empty.jpg", "missing.jpg"]
    table = folder / "table.csv"
    table.write_text("image\n" + "".join(f"{name}\n" for name in names))
    return table


def truth(out, count):
    """Whether a folder of parts holds every picture once, and the manifest says so."""
    parts = Collection(out)
    names = Counter(parts.whole().names)
    expected = {*(f"{number:05d}.jpg" for number in range(count - 1)), "slow.png"}
    reasons = {
        "broken.jpg": "a damaged image",
        "empty.jpg": "an empty file",
        "missing.jpg": "No such file or directory",
    }
    left_out = {"cannot be read": 3}
    return {
        "lost": len(expected - set(names)),
        "twice": sum(times > 1 for times in names.values()),
        "foreign": len(set(names) - expected),
        "reasons_right": dict(parts.rejected()) == reasons,
        "count_right": parts.manifest["count"]
        == {"seen": count + 3, "taken": count, "left": left_out},
    }


def largest_difference(table, other):
    """Between the vectors of two folders of parts, by name; NaN if the names differ."""
    first, second = (Collection(folder).whole() for folder in (table, other))
    if first.names != second.names:
        return float("nan")
    pairs = [(first.arrays[key], second.arrays[key]) for key in first.arrays]
    return max(float(np.abs(a - b).max()) for a, b in pairs)


class Measured:
    """What a command printed and cost, with all processes that carry its mark."""

    def __init__(self, output, watched, mine):
        self.output = output
        self.cpu_seconds = sum(cpu for cpu, _, _ in watched.values())
        self.driver = watched.get(mine, (0.0, 0, ""))[1]
        memory = [peak for _, peak, name in watched.values() if "MapWorker" in name]
        self.workers = max(memory, default=0)

    def row(self):
        """Figures of a report."""
        row = {"cpu_seconds": self.cpu_seconds, "driver_MiB": self.driver / 2**20}
        return row | ({"largest_worker_MiB": self.workers / 2**20} if self.workers else {})

    def nodes(self):
        """The line that says which node encoded how many."""
        return next(line for line in self.output.splitlines() if "encoded on" in line)


def command_line(arguments):
    """`halo search encode` with arguments."""
    return [sys.executable, "-m", "halo_search", "search", "encode", *map(str, arguments)]


def start_command(arguments):
    """Starts the command."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command_line(arguments), **how)


def finish(job):
    """Waits for a command, which must succeed."""
    output = job.communicate()[0]
    assert job.returncode == 0, output


def run_command(arguments, watch=None):
    """Runs the command and measures it, together with a cluster of the mark `watch`."""
    mark, watched, ended = uuid.uuid4().hex, {}, threading.Event()
    marks = {mark, watch} - {None}
    before = sample(marks)
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = {**os.environ, _MARK: mark}
    job = subprocess.Popen(command_line(arguments), env=environment, **how)

    def sampling():
        while not ended.wait(0.5):
            for process, (cpu, memory, name) in sample(marks).items():
                peak = max(memory, watched.get(process, (0, 0))[1])
                cpu -= before.get(process, (0.0,))[0]
                watched[process] = cpu, peak, name

    thread = threading.Thread(target=sampling)
    thread.start()
    output = job.communicate()[0]
    ended.set()
    thread.join()
    assert job.returncode == 0, output
    return Measured(output, watched, job.pid)


def sample(marks):
    """`{process: (CPU-seconds, resident bytes, name)}` of the processes with one of the marks."""
    measured = {}
    wanted = [f"{_MARK}={mark}".encode() for mark in marks]
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError, ValueError):
            folder = Path("/proc", process)
            environment = (folder / "environ").read_bytes().split(b"\0")
            if not any(mark in environment for mark in wanted):
                continue
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            memory = int((folder / "statm").read_text().split()[1]) * _PAGE
            name = (folder / "cmdline").read_bytes().decode(errors="replace")
            measured[int(process)] = (int(fields[11]) + int(fields[12])) / _TICKS, memory, name
    return measured


def wait_for_parts(out, count, job):
    """Waits until a job has written some parts; how many there are then."""
    while job.poll() is None:
        done = len(list(out.glob("part-*.parquet")))
        if done >= count:
            return done
        time.sleep(0.02)
    raise RuntimeError(f"the job ended before it was killed: {job.communicate()[0]}")


class Nodes:
    """A cluster of processes on this machine."""

    def __init__(self, count):
        from ray.cluster_utils import Cluster

        self.mark = uuid.uuid4().hex
        os.environ.update({_MARK: self.mark, "RAY_USAGE_STATS_ENABLED": "0"})
        store = {"object_store_memory": 100 * 2**20}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **store})
        self._store, self._nodes = store, []
        for _ in range(count):
            self.add()
        self.address = self.cluster.address

    def add(self):
        """One more node of one CPU."""
        self._nodes.append(self.cluster.add_node(num_cpus=1, **self._store))

    def remove(self, number):
        """Kills a node without warning."""
        self.cluster.remove_node(self._nodes.pop(number), allow_graceful=False)


@contextlib.contextmanager
def cluster(count):
    """Yields the running `Nodes`."""
    nodes = Nodes(count)
    try:
        yield nodes
    finally:
        nodes.cluster.shutdown()
        os.environ.pop(_MARK, None)


SCENARIOS = {
    "equality": equality,
    "overhead": overhead,
    "growth": growth,
    "dead_nodes": dead_nodes,
    "dead_drivers": dead_drivers,
}


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        name, _, number = chosen.partition("=")
        with tempfile.TemporaryDirectory() as folder:
            sizes = () if not number else (int(number),)
            for row in SCENARIOS[name](Path(folder), *sizes):
                print(json.dumps({"scenario": name, **row}), flush=True)
