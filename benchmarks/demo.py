"""How long the demo takes to be up and to answer: one query, one user, many users at once.

`python -m benchmarks demo`. The server and its users share one process and its cores, so the
figures hold the users' own work too.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import zoo
from benchmarks.question import environment, high_water
from benchmarks.report import Report
from benchmarks.serve import CODE, cpu_seconds
from halo_search.cli.search import main as search

IMAGES, QUERIES, USERS, QUERIES_EACH, SEED = 10_000, 100, 20, 25, 0
TARGET, UP = 0.3, 20  # seconds: of 95 % of the queries, and until the page is there
_SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main():
    with tempfile.TemporaryDirectory() as private:
        os.environ["GRADIO_TEMP_DIR"] = private
        from demo import page

        built = page.build(_gallery(private))
        address = page.launch(built, wait=False, quiet=True)
        try:
            return [
                _start(),
                _one_by_one(built.service, address),
                _at_once(built.service, address),
            ]
        finally:
            built.close(verbose=False)


def _start():
    """From the command to the page and an answer: with an empty cache, again, and of an index."""
    report = Report("From `halo demo` to the page of 170 photos and to an answer", SEED)
    path = {**environment(), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    photos = str(Path(zoo.__file__).parent / "photos")
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
    report.notes.append(f"target: the page within {UP:.0f} s")
    return report


def _ask(address, caption):
    """One question through the API, with nothing but HTTP."""
    place = f"{address}/gradio_api/call/find_images"
    body = json.dumps({"data": [caption, None, 8]}).encode()
    request = urllib.request.Request(place, body, {"Content-Type": "application/json"})
    event = json.load(urllib.request.urlopen(request, timeout=60))["event_id"]
    said = urllib.request.urlopen(f"{place}/{event}", timeout=60).read().decode()
    if "event: complete" not in said:
        raise RuntimeError(f"{caption}: {said}")


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
    """Toy Birds' test images, each many times with a little noise in its embedding."""
    from demo import sources

    gallery = sources.load("toy_birds_pfe", cache=folder)
    rng = np.random.default_rng(SEED)
    rows = np.arange(IMAGES) % len(gallery.image_names)
    images = gallery.take("images", rows)
    noise = 0.02 * rng.standard_normal(images["mean"].shape, dtype=np.float32)
    images["mean"] = images["mean"] + noise
    return type(gallery)(
        f"{IMAGES:,} birds",
        gallery.asker,
        [gallery.image_names[row] for row in rows],
        [gallery.image_paths[row] for row in rows],
        gallery.captions,
        {**gallery.embeddings, "images": images},
    )


def _one_by_one(service, address):
    from gradio_client import Client, handle_file

    report = Report(f"One query at a time, {IMAGES:,} images, tiny model", SEED)
    captions, image = service.gallery.captions[:QUERIES], str(service.gallery.image_paths[0])
    client = Client(address, verbose=False)
    file = handle_file(image)
    calls = {
        "caption, the function": lambda text: service.find_images(text),
        "caption, through the API": lambda text: client.predict(
            caption=text, api_name="/find_images"
        ),
        "image, the function": lambda _: service.find_captions(image),
        "image, through the API": lambda _: client.predict(image=file, api_name="/find_captions"),
    }
    for name, call in calls.items():
        for text in captions[:5]:
            call(text)
        seconds = [_timed(call, text) for text in captions]
        report.add(query=name, **_percentiles(seconds))
    report.notes.append(f"target: 95 % of the queries within {1000 * TARGET:.0f} ms")
    return report


def _at_once(service, address):
    from gradio_client import Client

    report = Report(f"{USERS} users, {QUERIES_EACH} queries each, through the API", SEED)
    clients = [Client(address, verbose=False) for _ in range(USERS)]
    captions = service.gallery.captions
    errors = []

    def visit(user):
        seconds = []
        for number in range(QUERIES_EACH):
            text = captions[(user * QUERIES_EACH + number) % len(captions)]
            try:
                seconds.append(
                    _timed(
                        lambda text: clients[user].predict(caption=text, api_name="/find_images"),
                        text,
                    )
                )
            except Exception as error:
                errors.append(error)
        return seconds

    start = time.perf_counter()
    with ThreadPoolExecutor(USERS) as pool:
        seconds = [one for visits in pool.map(visit, range(USERS)) for one in visits]
    rate = len(seconds) / (time.perf_counter() - start)
    report.add(
        queries=len(seconds), errors=len(errors), **_percentiles(seconds), queries_per_second=rate
    )
    report.notes += [str(error) for error in errors[:3]]
    return report


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
