"""A running demo with many clients and harmful pictures beside them."""

import json
import sys
from pathlib import Path

import pytest

from processes import python

if not sys.platform.startswith("linux"):
    pytest.skip("only Linux has /proc", allow_module_level=True)
pytest.importorskip("gradio", reason="the extra 'demo' is not installed")


@pytest.mark.very_slow
def test_eight_clients_get_the_answers_that_they_get_alone(tmp_path):
    done = python(Path(__file__).parent / "crowd.py", tmp_path, 40)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == 0
    assert found["beside"][-1] <= 1, "seconds of the slowest answer"
    refused = {name for name, (status, _) in found["bombs"].items() if status in (0, 400, 413)}
    assert {*found["bombs"]} - refused == {"just allowed.png", "frames.gif"}
    assert set(found["statuses"]) <= {"200", "400", "413", "0"}
    assert found["ended"] <= 2, "seconds from SIGTERM to the end"
    assert (found["code"], found["children"][1], found["left"], found["log"]) == (143, 0, [], "")
