"""Every number of every recipe has its kind, and a command with another number is one sentence."""

import dataclasses
import importlib
import math
from pathlib import Path

import pytest

from zoo import cli
from zoo.cli import bounds

ROOT = Path(__file__).parents[1]


def settings_classes():
    names = [path.stem for path in sorted((ROOT / "recipes").glob("*.py"))]
    names += [f"studies.{path.stem}" for path in sorted((ROOT / "studies").glob("*.py"))]
    for name in names:
        for one in vars(importlib.import_module(name)).values():
            if (
                isinstance(one, type)
                and dataclasses.is_dataclass(one)
                and one.__name__ == "Settings"
            ):
                yield name, one


CLASSES = dict(settings_classes())


def refused(settings_class, *argv):
    with pytest.raises(SystemExit) as ended:
        cli.parse(settings_class, argv)
    return ended.value.code


@pytest.mark.parametrize("name", CLASSES)
def test_the_values_of_a_recipe_are_what_it_takes(name):
    for field in dataclasses.fields(CLASSES[name]):
        for value in (field.default, *(field.metadata.get(key) for key in ("toy", "smoke"))):
            bounds.check(field.name, field.name, value, field.metadata.get("kind"))


@pytest.mark.parametrize(
    ("recipe", "flag", "says"),
    [
        ("pcme_cub", "--batch-size=0", "--batch-size must be a whole number of at least 1"),
        (
            "pcme_cub",
            "--dim=99999999999999999999",
            "--dim must be at most 2147483647; received 99999999999999999999",
        ),
        ("pcme_cub", "--learning-rate=-1", "--learning-rate must be a finite number of at least 0"),
        ("pcme_cub", "--word-dropping=1.5", "--word-dropping must be a share from 0 to 1"),
        ("pcme_cub", "--scale=0", "--scale must be a finite number above 0"),
        ("pcme_cub", "--seed=-1", "--seed must be a whole number of at least 0"),
    ],
)
def test_a_number_that_is_none_of_its_kind_is_one_sentence(recipe, flag, says, capsys):
    assert refused(CLASSES[recipe], *flag.split()) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        ("size", (1, 7), (0, -1, 2**31)),
        ("count", (0, 7), (-1, 2**31)),
        ("share", (0.0, 1.0), (-0.1, 1.1, math.nan)),
        ("rate", (0.0, 1e30), (-1e-9, math.inf, math.nan)),
        ("positive", (1e-9,), (0.0, -1.0, math.inf)),
        ("signed", (-5.0, 0.0), (math.inf, -math.inf, math.nan)),
    ],
)
def test_bounds(kind, inside, outside):
    for value in inside:
        bounds.check("--x", "x", value, kind)
    for value in outside:
        with pytest.raises(ValueError, match=r"--x must be .*; received"):
            bounds.check("--x", "x", value, kind)


@pytest.mark.parametrize("text", ["--no-cache-features", "--cache-features"])
def test_a_yes_or_no_is_a_pair_of_flags(text):
    settings = cli.parse(CLASSES["pcmepp_coco"], text.split())
    assert settings.cache_features is (text != "--no-cache-features")
