"""The four paths walk commands of the pages, and a command that fails ends the walk."""

import shlex
from pathlib import Path

import pytest

from tools import paths

ROOT = Path(__file__).parents[2]


def command_lines(page):
    text = (ROOT / page).read_text().replace("\\\n", " ")
    return [shlex.split(line, comments=True) for line in text.splitlines() if _is_command(line)]


def _is_command(line):
    return line.startswith(("halo ", "python ", "curl ", "export/"))


@pytest.mark.parametrize("name", paths.WAYS)
def test_every_command_is_on_its_page(name):
    way = paths.WAYS[name]
    shown = command_lines(way.page)
    for step in way.steps:
        assert shlex.split(step.command) in shown, step.command


def test_a_walk_keeps_what_each_command_took(tmp_path, capsys):
    walk = paths.Walk(tmp_path)
    walk.run("photos", paths.Step("sleep 0.1"), tmp_path)
    with pytest.raises(SystemExit, match="no_such_command"):
        walk.run("photos", paths.Step("no_such_command"), tmp_path)
    assert "not found" in (tmp_path / "photos.log").read_text()
    (_, command, seconds, _), failed = walk.rows
    assert command == "sleep 0.1"
    assert seconds > 0.1
    assert "| photos | `sleep 0.1` | 0.0 | 0.0 |" in walk.table()
    assert failed[1] == "no_such_command"


def test_a_server_that_ends_before_it_answers_is_no_server(tmp_path):
    with pytest.raises(SystemExit, match="true"):
        paths.Walk(tmp_path).run("server", paths.Step("true", 1), tmp_path)
