import errno
import fcntl
import os
import signal
import subprocess
import sys

from zoo.files.atomic import atomic, remove_leftovers

WRITER = """
import os, sys, time
os.getpid = lambda: 1  # as in a container of its own
from zoo.files.atomic import atomic, remove_leftovers
folder, letter, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    with atomic(folder + "/shared.txt") as temporary, open(temporary, "w") as file:
        for _ in range(20):
            file.write(letter * 1000)
            file.flush()
        remove_leftovers(folder)
        os.stat(temporary)  # nobody cleaned it away
"""


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HALO_LAZY": "1"},  # they need no Keras
    )


def test_two_containers_write_one_file(tmp_path):
    writers = [start(WRITER, tmp_path, letter, 60) for letter in "ab"]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    while any(writer.poll() is None for writer in writers):
        if (tmp_path / "shared.txt").exists():
            found = (tmp_path / "shared.txt").read_text()
            assert found in ("a" * 20_000, "b" * 20_000)
        remove_leftovers(tmp_path)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["shared.txt"]


def test_what_the_dead_left_goes_and_what_the_living_write_stays(tmp_path):
    (tmp_path / "below").mkdir()
    program = WRITER.replace(
        "remove_leftovers(folder)", "print('writing', flush=True); time.sleep(60)"
    )
    dead, living = (start(program, tmp_path / "below", letter, 1) for letter in "ab")
    for writer in (dead, living):
        assert writer.stdout.readline() == "ready\n"
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "writing\n"
    assert len(list(tmp_path.rglob(".tmp-*"))) == 2
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    with atomic(tmp_path / "own"):
        remove_leftovers(tmp_path)
        assert len(list(tmp_path.rglob(".tmp-*"))) == 2  # of the living one, and its own
    living.kill()
    living.wait()
    remove_leftovers(tmp_path)
    assert not list(tmp_path.rglob(".tmp-*"))
    remove_leftovers(tmp_path / "missing")


def test_a_file_system_without_locks_keeps_what_nobody_can_tell(tmp_path, monkeypatch):
    def refused(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with atomic(tmp_path / "a") as temporary:
        temporary.write_text("whole")
        remove_leftovers(tmp_path)
        assert temporary.exists()
    assert (tmp_path / "a").read_text() == "whole"
