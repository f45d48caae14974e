"""LanceDB as the engine of galleries that do not fit into memory: recall, time, memory, kills.

`python -m benchmarks large` (`pip install ".[large]"`). Gaussians whose means lie in 1,000 clusters
of 32 underlying dimensions, searched by CSD: 200,000 × 256, 2,000,000 × 128 and 10,000,000 × 128,
which are drawn a part at a time and never all in memory. Each step is a process of its own, whose
peak memory is its row's. `LARGE_FOLDER` is where the index is written (7 GB), and `LARGE_ITEMS`
leaves out larger galleries. Recall@10 is against the exact CSD.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.timing import peak_bytes
from halo_search.index.similarities import Portable

SEED, K, QUESTIONS, CLUSTERS, UNDERLYING = 0, 10, 200, 1000, 32
SIZES = ((200_000, 256), (2_000_000, 128), (10_000_000, 128))
PART = 100_000  # items at once
ENVIRONMENT = dict(os.environ)
CSD = Portable("closed_form_sampled_distance", ("a Gaussian",), "csd", False, 1.0, 0.0, True)


def main():
    report = Report(f"LanceDB, CSD, {QUESTIONS} questions, recall@{K}", SEED)
    most = int(os.environ.get("LARGE_ITEMS", SIZES[-1][0]))
    for items, dim in SIZES:
        if items > most:
            continue
        folder = Path(tempfile.mkdtemp(dir=os.environ.get("LARGE_FOLDER")))
        try:
            built = _step("build", folder, items, dim)
            asked = _step("ask", folder, items, dim)
            killed = _killed(folder, items, dim) if items == SIZES[0][0] else {}
            report.add(items=items, dim=dim, **built, **asked, **killed)
        finally:
            shutil.rmtree(folder)
    report.notes.append(
        "CPU-ms per question one by one, and in batches of 100; open: the first too"
    )
    return report


def _command(step, folder, items, dim):
    return [sys.executable, "-m", "benchmarks.large", step, str(folder), str(items), str(dim)]


def _step(*arguments):
    more = {"check": True, "stdout": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    done = subprocess.run(_command(*arguments), **more)
    return json.loads(done.stdout.splitlines()[-1])


def _killed(folder, items, dim):
    """Kills a process while it adds, at several moments; what was saved must be there."""
    from halo_search.index.lance import LanceIndex

    before = LanceIndex.load(folder / "index")
    asked = _questions(dim)
    expected, lost = before.search(asked, K)[1], 0
    for seconds in (0.1, 0.3, 0.6, 1.0):
        with subprocess.Popen(
            _command("add", folder, items, dim), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        ) as child:
            child.stdout.readline()  # it begins to add
            time.sleep(seconds)
            child.send_signal(signal.SIGKILL)
        after = LanceIndex.load(folder / "index")
        lost += len(after) != items or not np.array_equal(after.search(asked, K)[1], expected)
    after.add(_part(0, 500, dim))
    after.save(folder / "index")
    return {
        "kills": 4,
        "lost": lost + (len(LanceIndex.load(folder / "index")) != items + 500),
    }


def build(folder, items, dim):
    from halo_search.index.lance import LanceIndex

    began, cpu = time.monotonic(), time.process_time()
    parts = (_part(number, PART, dim) for number in range(items // PART))
    LanceIndex.build(folder / "index", parts, CSD)
    cpu, wall = time.process_time() - cpu, time.monotonic() - began
    drawn = time.process_time()
    for number in range(5):
        _part(number, PART, dim)
    drawing = (time.process_time() - drawn) / 5 * (items // PART)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"build_cpu_s": cpu - drawing, "wall_s": wall, "GB": size / 1e9, "build_GiB": _peak()}


def ask(folder, items, dim):
    from halo_search.index.lance import LanceIndex

    asked = _questions(dim)
    cpu = time.process_time()
    index = LanceIndex.load(folder / "index")
    index.search(_some(asked, 0, 1), K)
    costs = {"open_cpu_s": time.process_time() - cpu, "open_MiB": 1024 * _peak()}
    cpu, ids = time.process_time(), []
    for start in range(0, QUESTIONS, 100):
        ids.append(index.search(_some(asked, start, start + 100), K)[1])
    costs["batch_ms"] = 1000 * (time.process_time() - cpu) / QUESTIONS
    cpu = time.process_time()
    for start in range(50):
        index.search(_some(asked, start, start + 1), K)
    costs["single_ms"] = 1000 * (time.process_time() - cpu) / 50
    costs["ask_GiB"] = _peak()
    truth = _truth(asked, items, dim)
    costs["recall"] = np.mean([np.isin(*r).mean() for r in zip(truth, np.vstack(ids), strict=True)])
    return costs


def add(folder, items, dim):
    from halo_search.index.lance import LanceIndex

    index = LanceIndex.load(folder / "index")
    print("begins", flush=True)
    for number in range(100):
        index.add(_part(number, PART, dim))
        index.save(folder / "index") if number == 99 else None
    return {}


def _truth(asked, items, dim):
    """The exact nearest, a part of the gallery at a time."""
    best = np.full((QUESTIONS, K), np.inf), np.zeros((QUESTIONS, K), np.int64)
    for number in range(items // PART):
        part = _part(number, PART, dim)
        mean = part["mean"]
        spread = np.exp(part["log_variance"]).sum(axis=1) + np.square(mean).sum(axis=1)
        values = spread - 2 * asked["mean"] @ mean.T
        nearest = np.argpartition(values, K, axis=1)[:, :K]
        values = np.hstack([best[0], np.take_along_axis(values, nearest, 1)])
        ids = np.hstack([best[1], nearest + number * PART])
        order = np.argsort(values, axis=1)[:, :K]
        best = np.take_along_axis(values, order, 1), np.take_along_axis(ids, order, 1)
    return best[1]


def _world(dim):
    rng = np.random.default_rng(SEED)
    directions = rng.standard_normal((UNDERLYING, dim), np.float32)
    return directions, rng.standard_normal((CLUSTERS, UNDERLYING), np.float32)


def _part(number, count, dim):
    """Items `number * PART` and on."""
    directions, centres = _world(dim)
    rng = np.random.default_rng([SEED, 1, number])
    codes = centres[rng.integers(CLUSTERS, size=count)]
    codes += 0.5 * rng.standard_normal(codes.shape, np.float32)
    return _gaussians(codes @ directions, rng)


def _questions(dim):
    directions, centres = _world(dim)
    rng = np.random.default_rng([SEED, 2])
    codes = centres[rng.integers(CLUSTERS, size=QUESTIONS)]
    codes += 0.5 * rng.standard_normal(codes.shape, np.float32)
    return _gaussians(codes @ directions, rng)


def _gaussians(mean, rng):
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    level = np.log(
        0.3 * np.exp(0.5 * rng.standard_normal((len(mean), 1), np.float32)) / len(mean.T)
    )
    return {"mean": mean, "log_variance": np.broadcast_to(level, mean.shape)}


def _some(embedding, start, stop):
    return {name: values[start:stop] for name, values in embedding.items()}


def _peak():
    """Most memory of this process so far, in GiB."""
    return peak_bytes() / 2**30


if __name__ == "__main__":
    step, folder, *sizes = sys.argv[1:]
    done = {"build": build, "ask": ask, "add": add}[step](Path(folder), *map(int, sizes))
    print(json.dumps(done))
