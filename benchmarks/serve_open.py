"""`halo search serve` beside clients that mean no good: what its users and its memory notice.

`python -m benchmarks serve_open`. 20 clients ask as in `benchmarks.serve`, alone, then beside 300
half-sent bodies and pictures of many pixels in few bytes. All connections are of this machine, and
the server is a process of its own.
"""

import base64
import contextlib
import io
import json
import re
import socket
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import zoo
from benchmarks import serve
from benchmarks.report import Report

HALF_SENT, BOMBS = 300, 6
LARGE = (7000, 7000)  # refused by its header
LARGEST = (4000, 4000)  # the most that is decoded
HEAD = b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def main():
    report = Report(f"{serve.CLIENTS} clients × {serve.QUESTIONS_EACH} questions", serve.SEED)
    with tempfile.TemporaryDirectory() as folder:
        zoo.Retriever.build("photos_pfe", zoo.data.packaged_photos()).save(folder)
        with serve.served(folder) as (address, process):
            serve.ask(address, "a question to begin with")
            pictures(address, [bomb((50, 50))])  # what the first picture loads
            serve.under_load(address, process.pid)
            before, alone = memory(process.pid), serve.under_load(address, process.pid)
            with Peak(process.pid) as peak, half_sent(address):
                attack = threading.Thread(
                    target=pictures, args=(address, [bomb(LARGE), bomb(LARGEST)] * BOMBS)
                )
                attack.start()
                beside = serve.under_load(address, process.pid)
                attack.join()
    for one, other in zip(alone, beside, strict=True):
        report.add(
            of=one["of"],
            alone=one["seconds"],
            beside=other["seconds"],
            ratio=other["seconds"] / one["seconds"],
        )
    report.notes.append(
        f"{HALF_SENT} half-sent bodies, {BOMBS} pictures of {LARGE} and {BOMBS} of {LARGEST}; "
        f"memory at most {peak.most - before:,.0f} MB above the {before:,.0f} MB before"
    )
    return report


def bomb(size):
    """The base64 of a picture of few bytes."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def pictures(address, texts):
    """Asks with each picture, all at once."""

    def ask(text):
        body = json.dumps({"image": text}).encode()
        headers = {"Content-Type": "application/json"}
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(
                urllib.request.Request(f"{address}/ask", body, headers), timeout=120
            ).read()

    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def half_sent(address):
    """Connections with bodies that never end; every third is large."""
    host, port = re.fullmatch(r"http://(.+):(\d+)", address).groups()
    with contextlib.ExitStack() as held:
        for number in range(HALF_SENT):
            connection = held.enter_context(socket.create_connection((host, int(port)), 10))
            connection.settimeout(2)
            size = 2**20 if number % 3 == 0 else 1
            with contextlib.suppress(OSError):  # a large one is not taken
                connection.sendall(HEAD + b"Content-Length: 9999999\r\n\r\n" + b" " * size)
        yield


class Peak:
    """The most memory of a process while the block runs, `most` MB."""

    def __init__(self, process):
        self.process, self.most, self.ended = process, 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def _watch(self):
        while not self.ended.is_set():
            self.most = max(self.most, memory(self.process))
            time.sleep(0.02)


def memory(process):
    """MB that a process has in memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1000
