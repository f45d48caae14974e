import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "helpers" / "kills.py"
ROOT = Path(__file__).parents[2]


@pytest.mark.very_slow
@pytest.mark.parametrize(("mode", "kills"), [("one", 20), ("two", 12)])
def test_killed_at_random_moments_a_run_ends_as_if_left_alone(mode, kills, tmp_path):
    path = os.pathsep.join(map(str, (ROOT, SCRIPT.parent)))
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, mode, str(kills)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["starts"] > kills
    assert found["same losses"]
    assert found["difference"] == 0
