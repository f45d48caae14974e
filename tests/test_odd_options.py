"""Every option of every command with wrong values: one line, exit code 2, and no time lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "helpers" / "odd_options.py"
ROOT = SCRIPT.parents[2]
NUMBERS = {  # at least one of what is refused when it is read
    *("-k", "--row", "--offset", "--port", "--candidates", "--shard-size", "--batch-size"),
    *("--version", "--image-size", "--max-pixels", "--resamples", "--images", "--captions"),
}


@pytest.fixture(scope="module")
def outcomes():
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )
    assert not done.returncode, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_each_ends_in_one_line_and_in_time(outcomes):
    assert len(outcomes) > 200
    for command, option, value, code, said, seconds in outcomes:
        case = command, option, value, code, said, seconds
        assert code == 2, case
        assert said.startswith("error: "), case
        assert said.count("\n") == 1, case
        assert seconds < 2, case


def test_what_is_no_number_names_the_flag(outcomes):
    named = set()
    for command, option, value, _, said, _ in outcomes:
        if option in NUMBERS and value in ("nonsense", "1e99", "") and command != "search encode":
            assert option in said, (command, option, value, said)
            named.add(option)
    assert named == NUMBERS
