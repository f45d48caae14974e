"""Encoding photos by worker processes: speed, and what is there after workers were killed.

`HALO_BENCHMARK_PHOTOS=FOLDER python -m benchmarks encoding`. The photos of a folder (Toy Birds, if
none is named) are repeated until there are 20,000, 50 broken ones among them, and encoded by the
preset `birds_infonce`. Each worker has one thread. A rate is that of the shards behind each
worker's first, since a start imports TensorFlow. Then all are encoded by two workers of which one
is killed ten times, at random moments.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import zoo
from benchmarks.report import Report
from zoo import collection
from zoo.collection import Collection, direct
from zoo.data import images, toy_birds
from zoo.evaluation import resizing_of

PRESET, SEED = "birds_infonce", 0
ITEMS = int(os.environ.get("HALO_BENCHMARK_ITEMS", 20_000))
TIMED, SHARD, BROKEN, KILLS, COMPARED = ITEMS // 10, 100, 50, 10, 500


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        photos = photos_of(folder)
        return [speed(photos, folder), survival(photos, folder)]


def photos_of(folder):
    """Names and paths of as many photos, some of them broken, in one random order."""
    root = os.environ.get("HALO_BENCHMARK_PHOTOS")
    if root is None:
        toy_birds.generate(folder / "birds", num_classes=30, image_size=224)
        root = folder / "birds" / "images"
    _, paths = collection.list_images(root)
    paths = [paths[i % len(paths)] for i in range(ITEMS - BROKEN)]
    for number in range(BROKEN):
        data = Path(paths[number]).read_bytes()
        broken = folder / f"broken-{number}.jpg"
        broken.write_bytes((b"", b"no picture", data[: len(data) // 3])[number % 3])
        paths.append(str(broken))
    order = np.random.default_rng(SEED).permutation(ITEMS)
    return [f"{place}" for place in range(ITEMS)], [paths[i] for i in order]


def speed(photos, folder):
    names, paths = (values[:TIMED] for values in photos)
    report = Report(f"{TIMED:,} photos by workers of one thread", SEED)
    rates = {}
    for workers in (1, 2):
        out = folder / f"workers-{workers}"
        encode(names, paths, out, workers)
        ends = sorted(path.stat().st_mtime for path in out.glob("shard-*"))
        rates[workers] = SHARD * (len(ends) - workers) / (ends[-1] - ends[workers - 1])
        times = rates[workers] / rates[1]
        report.add(workers=workers, photos_a_second=rates[workers], times_one_worker=times)
    report.notes.append("at least 1.6 times is wanted of two")
    return report


def survival(photos, folder):
    names, paths = photos
    rng, ended, out = np.random.default_rng(SEED), threading.Event(), folder / "killed"
    killed = []

    def kill():
        seen = set()
        while len(killed) < KILLS and not ended.is_set():
            there = workers_alive()
            if len(there) == 2 and not seen & set(there):
                seen.update(there)
                ended.wait(rng.uniform(5, 45))
                victim = int(rng.choice(there))
                if victim in workers_alive():
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
            ended.wait(0.2)

    thread = threading.Thread(target=kill)
    thread.start()
    started = time.perf_counter()
    try:
        encode(names, paths, out, 2)
    finally:
        ended.set()
        thread.join()
    seconds = time.perf_counter() - started
    done = Collection(out)
    found = done.names(range(len(done)))
    rejected = dict(done.rejected())
    files = {path.name for path in out.iterdir()}
    expected = {f"shard-{n:06d}.parquet" for n in range(len(done.paths))}
    expected |= {"job.json", "manifest.json"}
    half = sorted(name for name in files - expected if not name.startswith("rejected-"))
    report = Report(f"{ITEMS:,} photos, {BROKEN} of them broken, workers killed", SEED)
    report.add(
        kills=len(killed),
        seconds=seconds,
        items=len(found),
        twice=len(found) - len(set(found)),
        missing=len(set(names) - set(found) - set(rejected)),
        rejected=len(rejected),
        half_shards=len(half),
        largest_difference=difference(done, paths),
    )
    reasons = sorted(set(rejected.values()))
    report.notes.append(
        f"reasons: {', '.join(reasons)}; difference of {COMPARED} from "
        "`encode_images`, at most 1e-5 is wanted"
    )
    return report


def encode(names, paths, out, workers):
    pieces = collection.of_items("files", names, paths, SHARD)
    identity = {"model": PRESET, "side": "images"}
    direct.encode_here(pieces, PRESET, "images", out, identity, workers, progress=False)


def difference(done, paths):
    """The largest difference of some items' vectors from those of `encode_images`."""
    model = zoo.from_preset(PRESET)
    resizing, size = resizing_of(PRESET), model.image_encoder.input_shape[1]
    rows = np.random.default_rng(SEED).choice(len(done), min(COMPARED, len(done)), replace=False)
    arrays = collection.joined([shard.arrays for shard in done.shards()])
    pixels = [
        images.prepare(tf.io.read_file(paths[int(name)]), size, **resizing).numpy()
        for name in done.names(rows)
    ]
    expected = np.asarray(model.encode_images(np.stack(pixels)))
    return float(np.abs(arrays["mean"][rows] - expected).max())


def workers_alive():
    """The worker processes of this one."""
    own = ["pgrep", "-P", str(os.getpid()), "-f", "multiprocessing.spawn"]
    return [int(pid) for pid in subprocess.run(own, capture_output=True, text=True).stdout.split()]
