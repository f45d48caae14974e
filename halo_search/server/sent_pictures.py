"""Pictures of strangers: base64 or a data: URL of them, decoded in processes that can be ended."""

import base64
import binascii
import os
import queue
import re
import subprocess
import sys
import threading
from multiprocessing import Pipe

import numpy as np

from halo_search.errors import InputError

MAX_PIXELS = 16_000_000  # some 150 MB while it is decoded and resized
PROCESSES = 2  # of each lane
LANES = (2**21, 2), (MAX_PIXELS, 12)  # most pixels, and how nice the processes are
# Processor time of a picture and of a pixel: honest ones of 16 million take 0.9 s.
SECONDS, SECONDS_PER_PIXEL = 0.4, 1e-7
_WORK = "from halo_search.files.decoding import decode_for; decode_for{}"
_LONG = 60  # seconds after which a process is ended in any case
_EXPECTED = "image: expected the base64 of a picture's file, or a data: URL of one"
_URL = re.compile(r"\s*data:[^,]{0,200};base64,", re.I)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class Decoders:
    """Decodes in processes that start when they are needed, large pictures in some, all others in
    others; `decode_for` bounds what one costs, and `close` ends them, whatever they do."""

    def __init__(self, seconds: float = SECONDS, per_pixel: float = SECONDS_PER_PIXEL):
        self._lanes = [_Lane((seconds, per_pixel, *lane)) for lane in LANES]

    def decoded(self, contents: bytes) -> np.ndarray:
        """As of `halo_search.files.decoding`, up to `MAX_PIXELS`; waits for a free process."""
        for lane in self._lanes:
            shape, pixels = lane.decoded(contents)
            if pixels:  # else it is for the next
                break
        if not shape:
            raise InputError(pixels.decode())
        return np.frombuffer(pixels, np.uint8).reshape(np.frombuffer(shape, np.int64))

    def close(self) -> None:
        """Ends the processes; who waits for one gets an InputError."""
        for lane in self._lanes:
            lane.close()


class _Lane:
    def __init__(self, limits):
        self._limits = limits
        self._free, self._all, self._lock = queue.SimpleQueue(), [], threading.Lock()
        self._asked = 0  # pictures under way

    def decoded(self, contents):
        with self._lock:
            free, self._asked = self._free, self._asked + 1
            if len(self._all) < min(self._asked, PROCESSES):
                self._start()
        worker = free.get()
        try:
            if free is not self._free:  # closed meanwhile
                raise EOFError
            result = worker.ask(contents)
        except (EOFError, OSError):
            worker.end()
            with self._lock:
                if free is self._free:
                    self._all.remove(worker)
                    self._start()
                else:
                    free.put(worker)  # who waits is told, too
            raise InputError("it takes too long to decode") from None
        else:
            free.put(worker)
            return result
        finally:
            with self._lock:
                self._asked -= 1

    def _start(self):
        """Starts one more process."""
        worker = _Worker(*self._limits)
        self._all.append(worker)
        self._free.put(worker)

    def close(self):
        with self._lock:
            ended, self._all, self._free = self._all, [], queue.SimpleQueue()
        for worker in ended:
            worker.process.kill()


class _Worker:
    def __init__(self, *limits):
        self._pipe, theirs = Pipe()
        path = os.pathsep.join(filter(None, sys.path))
        with theirs:
            code = _WORK.format((theirs.fileno(), MAX_PIXELS, *limits))
            self.process = subprocess.Popen(
                [sys.executable, "-Wignore", "-c", code],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
            )

    def ask(self, contents):
        self._pipe.send_bytes(contents)
        if not self._pipe.poll(_LONG):
            raise EOFError
        return self._pipe.recv_bytes(), self._pipe.recv_bytes()

    def end(self):
        self.process.kill()
        self.process.wait()
        self._pipe.close()


def picture_of(text: str, decoders: Decoders) -> np.ndarray:
    """The pixels of a picture sent as base64, uint8 `(height, width, 3)`, upright; an InputError if
    it is none, or has more than `MAX_PIXELS`, which its header says."""
    contents = bytes_of(text)
    try:
        return decoders.decoded(contents)
    except InputError as error:
        raise InputError(f"image: {error}") from error


def bytes_of(text: str) -> bytes:
    """The bytes of a text of base64 of either alphabet, or a `data:` URL; white space and missing
    padding do not matter. An InputError if it is none, or empty."""
    start = _URL.match(text)
    if start is None and text[:300].strip()[:5].lower() == "data:":
        raise InputError(f"{_EXPECTED}; received a data: URL without ;base64")
    try:
        letters = text[start.end() if start else 0 :].encode("ascii")
        letters = letters.translate(_URL_SAFE, b" \t\r\n\f\v").rstrip(b"=")
        contents = base64.b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InputError(_EXPECTED) from None
    if not contents:
        raise InputError(f"{_EXPECTED}; received nothing")
    return contents
