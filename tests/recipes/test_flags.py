"""Every flag of every recipe: what it was, its default, its source. None changes unseen."""

from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from halo_search.cli.main import recipes
from tools import flags, recipe_help
from zoo import cli, training
from zoo.cli import AS_DEFAULT, differs, setting

WRITTEN = Path(__file__).parents[1] / "golden" / "flags.txt"
WRITE = "python -m tools.flags --out tests/golden/flags.txt"


def test_the_flags_of_all_recipes_are_those_that_are_written_down():
    found, expected = flags.text().splitlines(), WRITTEN.read_text().splitlines()
    changed = sorted(set(found) ^ set(expected))
    assert found == expected, f"{changed[:6]}; if it is meant: {WRITE}"


@pytest.mark.parametrize("name", recipes())
def test_the_help_without_keras_is_the_recipes_own(name):
    written = WRITTEN.parents[2] / "recipes" / recipe_help.FOLDER / f"{name}.txt"
    assert written.read_text() == recipe_help.help_of(name), "python -m tools.recipe_help"
    flags = written.with_suffix(".json").read_text()
    assert flags == recipe_help.flags_of(name), "python -m tools.recipe_help"


def test_what_differs_keeps_what_the_parent_says():
    @dataclass(frozen=True, kw_only=True)
    class Paper(training.RunSettings):
        dim: int = setting(512, "of the embedding", source="PCME, section 4", toy=64, smoke=8)

    @dataclass(frozen=True, kw_only=True)
    class Other(Paper):
        dim: int = differs(1024, toy=32, smoke=AS_DEFAULT)

    (dim,) = [field for field in fields(Other) if field.name == "dim"]
    assert dim.metadata["source"] == "PCME, section 4"
    assert "smoke" not in dim.metadata
    assert cli.parse(Other, []).dim == 32
    assert cli.parse(Other, ["--data-dir=x"]).dim == 1024
    assert cli.parse(Paper, ["--data-dir=x"]).dim == 512
    with pytest.raises(TypeError, match=r"Alone\.width differs from no parent's"):

        class Alone(training.RunSettings):
            width: int = differs(3)
