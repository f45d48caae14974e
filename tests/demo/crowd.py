"""Eight clients of a running demo, with bombs beside them: a script for `test_crowd.py`.

`python crowd.py FOLDER [QUESTIONS]`. Builds an index of the packaged photos in FOLDER, starts
`halo demo` on it, asks all questions alone, then eight clients at once while others send pictures
that were made to harm, and ends the demo by SIGTERM while they ask. Prints JSON: seconds of the
answers, how many differ from those alone, what the bombs were answered, and how it ended.
"""

import contextlib
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from halo_search.cli.search import main as search
from halo_search.photos import FOLDER, packaged_captions

CLIENTS = 8
CODE = "from halo_search.cli.main import main; main()"


def png(width, height, rows):
    """A PNG of one bit a pixel that says it has some size, and holds so many empty rows."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    row = bytes(1 + -(-width // 8))
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(rows)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def saved(image, kind, **more):
    file = io.BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()


def bombs():
    """`{name: bytes}` of pictures that take much more than they are."""
    plain, frames = (
        Image.new("L", (3900, 3900)),
        [Image.new("L", (1, 1), n % 2) for n in range(3000)],
    )
    scans = saved(plain, "JPEG", progressive=True)
    start = scans.index(b"\xff\xda")
    text = zlib.compress(bytes(2**26))
    chunk = struct.pack(">I", len(text) + 6) + b"zTXta\0\0" + text
    chunk += struct.pack(">I", zlib.crc32(chunk[4:]))
    small = png(8, 8, 8)
    return {
        "huge.png": png(30_000, 30_000, 30_000),
        "says it is huge.png": png(2**31 - 1, 2**31 - 1, 1),
        "just allowed.png": png(4000, 4000, 4000),
        "long text.png": small[:33] + chunk + small[33:],
        "many scans.jpg": scans[:start] + scans[start:-2] * 90 + b"\xff\xd9",
        "frames.gif": saved(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "cut.jpg": saved(plain, "JPEG")[:-50],
        "no picture": b"\0" * 2**20,
        "too large": b"\xff\xd8\xff" + bytes(12 * 2**20),
    }


def get(address, **values):
    place = f"{address}?{urllib.parse.urlencode(values)}"
    with urllib.request.urlopen(place, timeout=60) as answer:
        return json.load(answer)


def post(address, contents):
    """The status and the sentence that a picture is answered."""
    request = urllib.request.Request(address, contents, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read(200).decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:  # a body that is too large is not read to its end
        return 0, type(error).__name__


@contextlib.contextmanager
def started(index, folder):
    command = [sys.executable, "-c", CODE, "demo", str(index), "--port", "0"]
    more = {"stdout": subprocess.PIPE, "stderr": (folder / "log").open("w"), "text": True}
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, **more) as process:
        try:
            yield re.search(r"http://\S+", process.stdout.readline()).group().rstrip("/"), process
        finally:
            process.kill()


def timed(address, question):
    begun = time.perf_counter()
    answer = get(f"{address}/ask", q=question)
    return time.perf_counter() - begun, answer


def descendants(process):
    """The processes that a process started, by their numbers."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    children = {}
    for line in listed.stdout.splitlines():
        number, parent = map(int, line.split())
        children.setdefault(parent, []).append(number)
    found, todo = [], [process.pid]
    while todo:
        todo += (new := children.get(todo.pop(), []))
        found += new
    return found


def alive(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main(folder, count):
    index, temporary = folder / "index", folder / "temporary"
    temporary.mkdir()
    search(["build", str(FOLDER), str(index), "--model=photos_pfe", "--include-training"])
    questions = sorted(text for texts in packaged_captions().values() for text in texts)[:count]
    found = {"wrong": 0, "bombs": {}}
    with started(index, temporary) as (address, process):
        alone = {question: timed(address, question) for question in questions}
        found["alone"] = sorted(seconds for seconds, _ in alone.values())
        over, statuses = threading.Event(), Counter()

        def visit(client):
            order = questions[client:] + questions[:client]
            return [(question, *timed(address, question)) for question in order]

        def attack(path):
            while not over.is_set():
                for name, contents in sent.items():
                    status, said = post(f"{address}{path}", contents)
                    statuses[status] += 1
                    found["bombs"][name] = [status, said]

        sent = bombs()
        with ThreadPoolExecutor(CLIENTS) as clients, ThreadPoolExecutor(2) as attackers:
            attacks = [attackers.submit(attack, path) for path in ("/picture", "/own?name=a.png")]
            answers = [row for rows in clients.map(visit, range(CLIENTS)) for row in rows]
            over.set()
            for one in attacks:
                one.result()
        found["beside"] = sorted(seconds for _, seconds, _ in answers)
        found["wrong"] = sum(answer != alone[question][1] for question, _, answer in answers)
        found["statuses"] = statuses
        children = descendants(process)

        def ask_on():
            with contextlib.suppress(OSError, ValueError):
                while True:
                    get(f"{address}/ask", q=questions[0])

        threads = [threading.Thread(target=ask_on) for _ in range(CLIENTS)]
        threads.append(threading.Thread(target=post, args=(address, sent["just allowed.png"])))
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        begun = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        found["code"] = process.wait(30)
        found["ended"] = time.perf_counter() - begun
        for thread in threads:
            thread.join()
        time.sleep(0.5)
        found["children"] = [len(children), sum(map(alive, children))]
        found["left"] = sorted(path.name for path in temporary.iterdir() if path.name != "log")
        found["log"] = (temporary / "log").read_text()[-500:]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 12)
