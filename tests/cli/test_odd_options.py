"""Every option of every command with wrong values: one line, exit code 2, and no time lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import halo_search.cli.main as halo
from halo_search.cli import recipe_flags

SCRIPT = Path(__file__).parents[1] / "helpers" / "odd_options.py"
ROOT = SCRIPT.parents[2]
RECIPES = sorted((ROOT / "recipes" / "help").glob("*.json"))
VALUES = ("", "-7", "nonsense", "1e99", "/nowhere/at all")
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
        is_path = command == "search encode" or (command[:4], option) == ("demo", "--captions")
        if option in NUMBERS and value in ("nonsense", "1e99", "") and not is_path:
            assert option in said, (command, option, value, said)
            named.add(option)
    assert named == NUMBERS


def outcome(call, *arguments):
    """The exit code of what parses, or None where it takes the words."""
    try:
        call(*arguments)
    except SystemExit as end:
        return end.code
    return None


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_flags_of_a_recipe_are_refused_without_keras(path, capsys):
    """`halo train` reads these flags; what it takes the recipe itself may still refuse."""
    flags = [recipe_flags.Flag(**flag) for flag in json.loads(path.read_text())]
    parser = recipe_flags.parser_of()
    for flag in flags:
        flag.add(parser)
    for flag in flags:
        for value in VALUES:
            code = outcome(recipe_flags.given, parser, flags, [f"{flag.name}={value}"])
            error = capsys.readouterr().err
            assert code in (None, 2), (flag, value)
            if code == 2:
                assert error.startswith("error: "), (flag, value)
                assert error.count("\n") == 1, (flag, value)
                assert flag.name in error, (flag, value)
            is_odd = value in ("", "nonsense", "/nowhere/at all")
            is_limited = flag.choices is not None or flag.kind in ("int", "float", "bool")
            if (is_odd and is_limited) or (value == "" and flag.kind == "Path"):
                assert code == 2, (flag, value)


def test_halo_train_refuses_a_flag_before_it_imports_keras(monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(halo, "run", lambda *_: pytest.fail("the recipe was imported"))
    for words in (["--dim=-7"], ["--dimm=7"], ["--learning-rate", "nan"], ["--data-dir=/no/where"]):
        assert outcome(halo.main, ["train", "pcme_cub", *words]) == 2
        assert capsys.readouterr().err.startswith("error: ")
