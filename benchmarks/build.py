"""`halo search build` of 500 photos with `photos_pfe`: CPU time and largest memory of the process.

`python -m benchmarks build`. The photos are the packaged ones under three names each.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report
from zoo.data import packaged_photos

COUNT, MODEL = 500, "photos_pfe"


def main():
    """The report of one build."""
    report = Report(f"`halo search build` of {COUNT} photos, {MODEL}", seed=0)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "photos"
        folder.mkdir()
        photos = packaged_photos()
        for number in range(COUNT):
            (folder / f"{number:03}.jpg").symlink_to(photos[number % len(photos)])
        command = [sys.executable, "-m", "halo_zoo", "search", "build", str(folder)]
        command += [str(Path(home) / "index"), "--model", MODEL, "--include-training"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, env=dict(os.environ), stdout=subprocess.DEVNULL)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report.add(of="CPU", seconds=cpu, megabytes=after.ru_maxrss / 1024)
    report.add(of="wall clock", seconds=seconds)
    return report
