"""How long the demo takes to be up, to answer one user and many, and to move its map.

`python -m benchmarks demo`. In all but the first table the server and its users share one process
and its cores, so the figures hold the users' own work too.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import halo_search
from benchmarks.question import environment, high_water
from benchmarks.report import Report
from benchmarks.serve import CODE, cpu_seconds
from demo.service import SHOWN
from halo_search.cli.search import main as search
from halo_search.photos import packaged_captions

IMAGES, QUERIES, USERS, QUERIES_EACH, SEED = 5_000, 100, 20, 25, 0
TARGET, CPU, UP = 0.3, 0.15, 6  # seconds: of 95 % of the queries, CPU of one, CPU until the first
FRAMES, SECONDS = 30, 4  # a second, of the map while it moves; how long it moves
_SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main():
    with tempfile.TemporaryDirectory() as private:
        os.environ["GRADIO_TEMP_DIR"] = private
        from demo import page

        built = page.build(_gallery(private))
        address = built.launch(wait=False, quiet=True).rstrip("/")
        try:
            return [
                _start(),
                _one_by_one(built.service, address),
                _at_once(built.service, address),
                _map(address),
            ]
        finally:
            built.close()


def _start():
    """From the command to the page and an answer: with an empty cache, again, and of an index."""
    report = Report("From `halo demo` to the page of 170 photos and to an answer", SEED)
    path = {**environment(), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    photos = str(Path(halo_search.__file__).parent / "photos")
    with tempfile.TemporaryDirectory() as folder:
        path["HALO_CACHE"] = folder
        search(["build", photos, f"{folder}/index", "--model=photos_pfe", "--include-training"])
        ways = {
            "an empty cache": [],
            "again": [],
            "an index": ["index"],
            "the index again": ["index"],
        }
        for name, words in ways.items():
            start = time.perf_counter()
            with started(*words, cwd=folder, env=path) as (address, process):
                page = time.perf_counter() - start
                _ask(address, "a dog on a beach")
                report.add(
                    of=name,
                    page_seconds=page,
                    answer_seconds=time.perf_counter() - start,
                    cpu_seconds=cpu_seconds(process.pid),
                    megabytes=high_water(process.pid) / 1024,
                )
    report.notes.append(f"target: the first answer within {UP:.0f} CPU-seconds")
    return report


def _ask(address, caption):
    """One question as the page asks it."""
    place = f"{address}/ask?{urllib.parse.urlencode({'q': caption})}"
    with urllib.request.urlopen(place, timeout=120) as answer:
        return json.load(answer)


@contextlib.contextmanager
def started(*flags, **options):
    """`(address, process)` of a demo in a process of its own, once its page is there.

    Args:
        *flags: of `halo demo`, but for the port.
        **options: of `subprocess.Popen`.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", CODE, "demo", "--port", str(port), *flags]
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, **_SILENT, **options) as process:
        try:
            while not _answers(address):
                if process.poll() is not None:
                    raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
                time.sleep(0.1)
            yield address, process
        finally:
            process.terminate()


def _answers(address):
    try:
        with urllib.request.urlopen(address, timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def _gallery(folder):
    """The packaged photos, each many times with a little noise in its embedding."""
    from demo import sources

    gallery = sources.load("photos_pfe", cache=folder)
    rng = np.random.default_rng(SEED)
    rows = np.arange(IMAGES) % len(gallery.image_names)
    images = gallery.take("images", rows)
    noise = 0.02 * rng.standard_normal(images["mean"].shape, dtype=np.float32)
    images["mean"] = images["mean"] + noise
    return type(gallery)(
        f"{IMAGES:,} photos",
        gallery.asker,
        [gallery.image_names[row] for row in rows],
        [gallery.image_paths[row] for row in rows],
        [],
        {"images": images},
    )


def _one_by_one(service, address):
    report = Report(f"One question at a time, {IMAGES:,} photos", SEED)
    calls = {
        "the function": lambda text: service.find_images(text, results=SHOWN),
        "the page's request": lambda text: _ask(address, text),
    }
    captions = _captions()[:QUERIES]
    for name, call in calls.items():
        for text in captions[:5]:
            call(text)
        start = time.process_time()
        seconds = [_timed(call, text) for text in captions]
        spent = (time.process_time() - start) / len(captions)
        report.add(question=name, **_percentiles(seconds), cpu_ms=1000 * spent)
    report.notes.append(f"target: {1000 * CPU:.0f} CPU-ms and 95 % within {1000 * TARGET:.0f} ms")
    return report


def _at_once(service, address):
    report = Report(f"{USERS} users, {QUERIES_EACH} questions each, as the page asks", SEED)
    captions, errors = _captions(), []

    def visit(user):
        seconds = []
        for number in range(QUERIES_EACH):
            text = captions[(user * QUERIES_EACH + number) % len(captions)]
            try:
                seconds.append(_timed(lambda text: _ask(address, text), text))
            except Exception as error:
                errors.append(error)
        return seconds

    start = time.perf_counter()
    with ThreadPoolExecutor(USERS) as pool:
        seconds = [elapsed for visits in pool.map(visit, range(USERS)) for elapsed in visits]
    rate = len(seconds) / (time.perf_counter() - start)
    report.add(questions=len(seconds), errors=len(errors), **_percentiles(seconds), per_second=rate)
    report.notes += [str(error) for error in errors[:3]]
    return report


# Frames while the map is zoomed in and out and panned.
_MOVES = """seconds => new Promise((done) => {
  const { canvas, zoom } = haloMap, start = performance.now(), times = [];
  const paint = haloMap.paint.bind(haloMap);
  const painting = [];
  haloMap.paint = () => {
    const before = performance.now();
    paint();
    painting.push(performance.now() - before);
  };
  const step = (now) => {
    times.push(now);
    const t = (now - start) / 1000;
    const k = 1 + 5 * Math.sin(t) ** 2;
    const move = d3.zoomIdentity.translate(-400 * (k - 1), -300 * (k - 1)).scale(k);
    d3.select(canvas).call(zoom.transform, move);
    if (t < seconds) return requestAnimationFrame(step);
    const gaps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
    done({
      frames: (times.length - 1) / t, slowest: gaps[Math.floor(0.95 * gaps.length)],
      painting: painting.sort((a, b) => a - b)[Math.floor(painting.length / 2)],
    });
  };
  requestAnimationFrame(step);
})"""


def _map(address):
    from playwright.sync_api import sync_playwright

    report = Report(f"The map of {IMAGES:,} photos in Chromium while it moves", SEED)
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        report.notes.append("not measured: no chromium is installed")
        return report
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900}, bypass_csp=True)
        page.set_default_timeout(120_000)
        page.goto(f"{address}/?page=map")
        sheets = -(-IMAGES // 256)
        page.wait_for_function(f"window.haloMap?.tiles.length === {sheets}")
        measured = page.evaluate(_MOVES, SECONDS)
        browser.close()
    report.add(
        frames_per_second=measured["frames"],
        p95_ms_between_frames=measured["slowest"],
        median_ms_to_paint=measured["painting"],
    )
    report.notes.append(f"target: {FRAMES} frames a second")
    return report


def _captions():
    """Captions of the packaged photos, in a fixed order of chance."""
    texts = [text for texts in packaged_captions().values() for text in texts]
    return np.random.default_rng(SEED).permutation(texts).tolist()


def _timed(call, argument):
    start = time.perf_counter()
    call(argument)
    return time.perf_counter() - start


def _percentiles(seconds):
    middle, high = np.percentile(seconds, (50, 95))
    return {
        "median_ms": 1000 * float(middle),
        "p95_ms": 1000 * float(high),
        "slowest_ms": 1000 * max(seconds),
    }
