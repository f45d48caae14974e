"""TensorFlow works without its notes on the terminal; errors are still seen.

Its C++ libraries write "WARNING: All log messages before absl::InitializeLog() is called …" and
notes on oneDNN, CUDA and the processor to standard error while they are loaded and first used,
whatever `TF_CPP_MIN_LOG_LEVEL` says. So a small process of its own, this file as a script, reads
standard error and passes on all lines but these: what is written just before a crash too.
`TF_CPP_MIN_LOG_LEVEL=0` shows everything.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
NOTES = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called"
    rb"|I\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: I "  # of information
    rb"|To enable the following instructions:"
    rb"|[EW]\d{4} .*(?:factory for plugin cu\w+ when one|computation_placer already registered)"
    rb"|E\d{4} .*oneDNN supports DT_\w+ only on platforms with"
)
NO_CUDA = re.compile(rb"E\d{4} .*failed call to cuInit")
SECONDS = 0.5  # for the last lines, where a child of this process still holds standard error


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Within this block the C++ libraries write no notes to standard error.

    What Python writes goes straight to where it went before. Nothing is done where the user asks
    for the notes, and where there is no such process.
    """
    if os.environ.get(LEVEL) == "0" or os.name != "posix" or not sys.executable:
        yield
        return
    command = [sys.executable, "-I", "-S", __file__]
    try:
        terminal = os.dup(2)
        # In a session of its own, Ctrl-C does not end it before this process.
        filter_ = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    except OSError:  # standard error is closed, or there may be no further process
        yield
        return
    os.dup2(filter_.stdin.fileno(), 2)
    filter_.stdin.close()
    try:
        with _python_straight_to(terminal):
            yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            filter_.wait(SECONDS)


@contextlib.contextmanager
def _python_straight_to(terminal):
    try:
        is_terminal = sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):  # None, or what a notebook or a test puts there
        is_terminal = False
    if not is_terminal:
        yield
        return
    before = sys.stderr
    before.flush()
    # Its own descriptor, since a logger may keep it for longer than this lasts.
    raw = io.FileIO(os.dup(terminal), "w")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), before.encoding, before.errors, line_buffering=True
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before


def has_cuda_device() -> bool:
    """Whether this host has a GPU of NVIDIA's, so that CUDA's failures are no notes."""
    return os.path.exists("/dev/nvidia0")


def _pass_on():
    has_cuda = has_cuda_device()
    for line in sys.stdin.buffer:
        if not (NOTES.match(line) or (NO_CUDA.match(line) and not has_cuda)):
            os.write(2, line)


if __name__ == "__main__":
    _pass_on()
