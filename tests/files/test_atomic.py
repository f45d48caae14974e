import os
import subprocess
import sys

from zoo.files.atomic import remove_leftovers

WRITER = """
import os, sys
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


def test_what_nobody_has_written_to_for_an_hour_goes(tmp_path):
    (tmp_path / "below").mkdir()
    old, young = tmp_path / "below" / f".tmp-{'0' * 16}-a", tmp_path / f".tmp-{'1' * 16}-a"
    for path in (old, young, tmp_path / ".tmp-mine"):
        path.write_text("half")
    for path in (old, tmp_path / ".tmp-mine"):
        os.utime(path, (0, 0))
    remove_leftovers(tmp_path, deep=False)
    assert old.exists()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"below", young.name, ".tmp-mine"}
    assert not old.exists()
    remove_leftovers(tmp_path / "missing")
