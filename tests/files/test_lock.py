import errno
import fcntl
import os
import time
from pathlib import Path

import pytest
from filelock import Timeout

import forked
from zoo.errors import InputError
from zoo.files import locked
from zoo.files.atomic import in_turn
from zoo.models.run_folder import RunFolder

HOLDER = """
import sys, time
from zoo.files.atomic import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    process = forked.start(HOLDER, tmp_path / "run")
    while not Path(process.out.name).read_text():
        assert process.is_alive(), process.err.read()
        time.sleep(0.01)
    yield process
    process.kill()
    process.join()


def test_a_second_process_is_told_and_killed_it_holds_nothing(holder, tmp_path):
    with (
        pytest.raises(InputError, match="another process is training in"),
        locked(tmp_path / "run"),
    ):
        pytest.fail("the lock was given twice")
    holder.kill()
    holder.join()
    with locked(tmp_path / "run"):
        pass


def test_it_is_free_after_the_block_and_after_an_error(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), locked(tmp_path / "run"):
            raise KeyError
    with locked(tmp_path / "run"), locked(tmp_path / "other"):
        pass
    with locked(tmp_path / "run"):
        run = RunFolder.open(tmp_path / "run", {"seed": 0})  # the lock is no other file
    assert run.settings == {"seed": 0}


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch):
    def none(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(UserWarning, match="without locks"), locked(tmp_path / "run"):
        pass


def test_a_turn_that_does_not_come_is_an_error(tmp_path):
    with in_turn(tmp_path):
        began = time.monotonic()
        with pytest.raises(Timeout), in_turn(tmp_path, 0.2):
            pytest.fail("the lock was given twice")
        assert 0.2 <= time.monotonic() - began < 2
    with in_turn(tmp_path, 0):
        pass
