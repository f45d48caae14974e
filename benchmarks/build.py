"""`halo search build` of 500 photos with `photos_pfe`: CPU time and largest memory of the process.

`python -m benchmarks build`. The photos are the packaged ones under several names each. BUILD_MODEL
and BUILD_COUNT choose others; of a model that is not ours, `zoo.Tower` is compared with `predict`.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import zoo
from benchmarks.report import Report
from zoo.data import packaged_photos

OURS = "photos_pfe"
COUNT, MODEL = int(os.environ.get("BUILD_COUNT", 500)), os.environ.get("BUILD_MODEL", OURS)


def main():
    """The report of one build."""
    report = Report(f"`halo search build` of {COUNT} photos, {MODEL}", seed=0)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "photos"
        folder.mkdir()
        photos = packaged_photos()
        for number in range(COUNT):
            (folder / f"{number:03}.jpg").symlink_to(photos[number % len(photos)])
        command = [sys.executable, "-m", "halo_search", "search", "build", str(folder)]
        command += [str(Path(home) / "index"), "--model", MODEL, "--include-training"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, env=dict(os.environ), stdout=subprocess.DEVNULL)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report.add(of="CPU", seconds=cpu, megabytes=after.ru_maxrss / 1024)
    report.add(of="wall clock", seconds=seconds)
    return report if MODEL == OURS else [report, encoding()]


def encoding(count=64):
    """The report of a model's towers, once they are compiled."""
    model, report = zoo.from_preset(MODEL), Report(f"encoding, {MODEL}", seed=0)
    photos, words = packaged_photos()[:count], ["a dog on a beach"]
    images, captions = (zoo.Tower(model, side) for side in ("images", "captions"))
    pixels = np.stack([images.fitted(photo) for photo in photos]).astype(np.float32)
    for of, call, items in (
        ("`zoo.Tower`, a photo", lambda: images.of_files(photos), count),
        ("`predict`, a photo", lambda: model.image_encoder.predict(pixels, verbose=0), count),
        ("a question", lambda: captions.of_texts(words), 1),
    ):
        call()
        start = time.process_time()
        call()
        report.add(of=of, seconds=(time.process_time() - start) / items)
    return report
