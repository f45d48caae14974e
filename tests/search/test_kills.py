"""Changes of saved indexes that are killed at any moment: the index is as before, or as after."""

import json
from pathlib import Path

import pytest

import forked

PROGRAM = Path(__file__).parent.parent / "helpers" / "killed_changes.py"


def counts_of(tmp_path, moments):
    done = forked.run(PROGRAM, tmp_path, moments, timeout=900)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    for found in counts.values():
        assert found["killed"] + found["through"] == moments
    assert sum(found["killed"] for found in counts.values()) > 0
    return counts


@pytest.mark.slow
def test_a_killed_change_leaves_the_old_or_the_new(tmp_path):
    counts = counts_of(tmp_path, 4)
    assert set(counts) == {"add", "remove", "save", "build", "update"}
