"""`halo search serve` and the demo beside clients that mean no good: what their users notice.

`python -m benchmarks serve_open`. 20 clients ask as in `benchmarks.serve`, alone, then beside 300
half-sent bodies and pictures of many pixels in few bytes; what the server's memory does is said
too. All connections are of this machine, and each server is a process of its own.
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
from benchmarks import demo, serve
from benchmarks.report import Report

HALF_SENT, BOMBS = 300, 6
LARGE = (7000, 7000)  # refused by its header
LARGEST = (4000, 4000)  # the most that is decoded
HEAD = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
EVENTS = "/gradio_api/call"


def main():
    return [of_serve(), of_demo()]


def of_serve():
    with tempfile.TemporaryDirectory() as folder:
        zoo.Retriever.build("photos_pfe", zoo.data.packaged_photos()).save(folder)
        with serve.served(folder) as (address, process):
            serve.ask(address, "a question to begin with")
            return beside("halo search serve", address, process.pid, "/ask", serve.answers, ask)


def of_demo():
    """Through Gradio's own API: an event that is sent, and the stream that brings its answer."""
    with tempfile.TemporaryDirectory() as folder, demo_of(folder) as (address, process):
        answered(address, "a question to begin with")
        return beside("halo demo", address, process.pid, f"{EVENTS}/find_images", answered, upload)


def beside(name, address, process, path, answered, sent):
    """The report of one server.

    Args:
        name: of the server.
        address, process: where it listens, and the number of its process.
        path: what half-sent bodies are sent to.
        answered: a function of `(address, question)`, see `serve.under_load`.
        sent: a function of `(address, picture)` that sends one of `bomb`.
    """
    sent(address, bomb((50, 50)))  # what the first picture loads
    serve.under_load(address, process, answered)
    before, alone = memory(process), serve.under_load(address, process, answered)
    with Peak(process) as peak, half_sent(address, path):
        bombs = [bomb(LARGE), bomb(LARGEST)] * BOMBS
        attack = [threading.Thread(target=sent, args=(address, one)) for one in bombs]
        for thread in attack:
            thread.start()
        meanwhile = serve.under_load(address, process, answered)
        for thread in attack:
            thread.join()
    report = Report(
        f"{name}: {serve.CLIENTS} clients × {serve.QUESTIONS_EACH} questions", serve.SEED
    )
    for one, other in zip(alone, meanwhile, strict=True):
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


def demo_of(folder):
    """A demo of the packaged photos with some captions, see `benchmarks.demo.started`.

    Args:
        folder: where its embeddings and the captions are kept.
    """
    captions = Path(folder, "captions.txt")
    texts = (f"{one} {place}" for one in serve.SUBJECTS for place in serve.PLACES)
    captions.write_text("\n".join(texts), encoding="utf-8")
    photos = str(zoo.data.packaged_photos()[0].parent)
    return demo.started("--cache", folder, "--photos", photos, "--captions", str(captions))


def answered(address, question):
    """Whether the demo answers a question; it names no question in its answer."""
    return b"event: complete" in event(address, "find_images", [str(question), None, 10])


def event(address, name, values):
    """The stream of one event of Gradio, whole."""
    body = json.dumps({"data": values}).encode()
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}{EVENTS}/{name}", body, head)
    with urllib.request.urlopen(request, timeout=60) as answer:
        number = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{address}{EVENTS}/{name}/{number}", timeout=60) as answer:
        return answer.read()


def upload(address, picture):
    """Asks the demo by a picture: what is not decoded is refused in a sentence."""
    line = b"halo-benchmark"
    file = (
        b'Content-Disposition: form-data; name="files"; filename="a.png"\r\nContent-Type: image/png'
    )
    body = b"--%b\r\n%b\r\n\r\n%b\r\n--%b--\r\n" % (line, file, picture, line)
    head = {"Content-Type": f"multipart/form-data; boundary={line.decode()}"}
    with contextlib.suppress(urllib.error.HTTPError):
        request = urllib.request.Request(f"{address}/gradio_api/upload", body, head)
        with urllib.request.urlopen(request, timeout=120) as answer:
            path = json.load(answer)[0]
        file = {"path": path, "meta": {"_type": "gradio.FileData"}}
        event(address, "find_captions", [file, None, 10])


def bomb(size):
    """A picture of few bytes."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, "PNG")
    return file.getvalue()


def ask(address, picture):
    """Asks `serve` by a picture."""
    body = json.dumps({"image": base64.b64encode(picture).decode()}).encode()
    request = urllib.request.Request(f"{address}/ask", body, {"Content-Type": "application/json"})
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=120).read()


@contextlib.contextmanager
def half_sent(address, path):
    """Connections with bodies that never end; every third is large."""
    head = HEAD.format(path).encode()
    host, port = re.fullmatch(r"http://(.+):(\d+)", address).groups()
    with contextlib.ExitStack() as held:
        for number in range(HALF_SENT):
            connection = held.enter_context(socket.create_connection((host, int(port)), 10))
            connection.settimeout(2)
            size = 2**20 if number % 3 == 0 else 1
            with contextlib.suppress(OSError):  # a large one is not taken
                connection.sendall(head + b"Content-Length: 9999999\r\n\r\n" + b" " * size)
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
