"""Flags that do not fit each other or the data end in one line, before anything is trained."""

import pytest

import pcme_cub
from zoo import cli
from zoo.training.checks import TRACEBACK

SMALL = ("--smoke", "--backbone=tiny", "--image-size=32", "--dim=8", "--word-dim=8")
pytestmark = pytest.mark.usefixtures("small_sets", "undecoded")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dim=1"], "even for two halves"),
        (["--backbone=resnet50", "--image-size=8"], "at least 32x32"),
        (["--pairs-per-class=1000"], "received 1000"),
        (["--gradient-accumulation=1000"], "--gradient-accumulation must be at most"),
        (["--test-similarities", "own", "chamfer"], "--test-similarities chamfer"),
        (["--mean-only", "--test-similarities", "csd"], "--test-similarities csd"),
    ],
    ids=str,
)
def test_it_is_one_line_and_nothing_is_trained(tmp_path, capsys, flags, said):
    with pytest.raises(SystemExit) as stop:
        cli.run(pcme_cub.main, [*SMALL, *flags, f"--out={tmp_path / 'run'}"])
    assert stop.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert said in line
    assert "\x1b" not in line
    assert not (tmp_path / "run" / "history.csv").exists()
    if TRACEBACK in line:  # a defect of ours would be told by it
        assert "Traceback" in (tmp_path / "run" / TRACEBACK).read_text()
