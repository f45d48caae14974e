"""docs/reproduce.csv: its commands are real ones, and no table or figure is missing."""

import csv
import dataclasses
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from documented_install import with_variables
from zoo import cli
from zoo.data import toy_scenes
from zoo.models.run_folder import RunFolder

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reproduce.md").read_text()
with (ROOT / "docs" / "reproduce.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def as_script(command):
    """`python -m studies.x` as `python studies/x.py`, beside `python recipes/x.py`."""
    if command[1] == "-m" and command[2].startswith("studies."):
        return ["python", command[2].replace(".", "/") + ".py", *command[3:]]
    return command


COMMANDS = [
    as_script(shlex.split(with_variables(row["command"], PAGE)))
    for row in ROWS
    if row["command"].startswith("python ")
]
RECIPES = [command for command in COMMANDS if command[1].startswith(("recipes/", "studies/"))]

# Typed from the papers: all tables, and the figures that show results.
PRINTED = {
    "PCME": (
        "1 2 3 D.1 D.2 D.3 E.1 E.2 E.3 E.4 E.5",
        "5 6 7 8 C.1 C.2 D.1 D.2 D.3 E.1 E.2 E.3 F.1 F.2 F.3 F.4",
    ),
    "Gaussian VSE++ and VSRN": ("1 2 3 4 5 6 7 8", "2 3 4 5 6 7"),
    "DAA": ("1 2 3 4", "1 3 4"),
    "PCME++": ("1 2 3 4 5 6 C.1 C.2 C.3 C.4 C.5 C.6 C.7 C.8 C.9", "2 5 6 C.1 C.2"),
    "DivE": ("1 2 3 4 5", "4"),
}
TABLES = {"ablations"}  # rows of other recipes
# Of points, of arrays, and of finished runs.
NO_DATA = {"toy_2d", "similarity_flops", "daa_figures", "pcme_figures", "plausible_matches"}
NO_DATA |= {"approximate_search"}
NUMBER = r"[A-Z]?\.?\d+\b(?: \([a-c]\))?"
LIST = re.compile(rf"\b(table|figure)s? ({NUMBER}(?:(?:, |–| and ){NUMBER})*)")


def module_of(name):
    is_recipe = (ROOT / "recipes" / f"{name}.py").exists()
    return importlib.import_module(name if is_recipe else f"studies.{name}")


def settings_of(name, flags):
    return cli.parse(module_of(name).Settings, list(flags))


@pytest.mark.parametrize("command", RECIPES, ids=" ".join)
def test_every_command_is_one_of_the_recipe(command):
    name, flags = Path(command[1]).stem, command[2:]
    settings = settings_of(name, flags)
    if name not in NO_DATA:
        assert settings.data_dir is not None, "the real files"
    if name not in TABLES:
        return
    common = [f"--data-dir={settings.data_dir}", *(f"--{flag}" for flag in settings.also)]
    for row in settings.chosen.values():
        recipe = sys.modules[row.main.__module__]
        for fold in getattr(settings, "folds", ()) or [None]:
            held_out = [] if fold is None else [f"--held-out={fold}"]
            cli.parse(recipe.Settings, [*row.flags, *common, *held_out])


def test_no_run_is_written_over_by_another():
    """Two commands with one folder are the same run."""
    folders = {}
    for command in RECIPES:
        out = settings_of(Path(command[1]).stem, command[2:]).out
        folders.setdefault(out, set()).add(" ".join(command))
    assert not {out: found for out, found in folders.items() if len(found) > 1}


def test_the_page_shows_rows_of_the_table():
    shown = re.findall(r"^\|[^|]*\| `((?:python|halo) [^`]+)` \|", PAGE, re.M)
    assert len(shown) > 20
    assert set(shown) <= {row["command"] for row in ROWS}


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_and_figure_has_its_place(paper):
    of_paper = [row for row in ROWS if row["paper"] == paper]
    section = "\n".join(f"{row['row']}; {row['differs']}" for row in of_paper)
    named = {"table": set(), "figure": set()}
    for kind, numbers in LIST.findall(section):
        for part in re.split(", | and ", re.sub(r" \([a-c]\)", "", numbers)):
            named[kind] |= set(expanded(*part.split("–")))
    for kind, printed in zip(("table", "figure"), PRINTED[paper], strict=True):
        assert named[kind] == set(printed.split()), kind


def expanded(first, last=None):
    """`"C.4", "C.6"` are C.4, C.5 and C.6."""
    letter, start = re.fullmatch(r"([A-Z]?\.?)(\d+)", first).groups()
    end = re.fullmatch(r"[A-Z]?\.?(\d+)", last or first)[1]
    return [f"{letter}{number}" for number in range(int(start), int(end) + 1)]


FILES = ("--data-dir", "--annotations-dir", "--glove", "--image-weights", "--out", "--classes-dir")
FILES += ("--backbone", "--weights", "--bpe", "--bert", "--bert-vocabulary")
SMALL = {"dim": 8, "word_dim": 8, "max_words": 9, "similarity_dim": 4, "batch_size": 8}
OF_RUNS = ("--model", "--ensemble", "--runs", "--run")  # other tests give them finished runs
TESTED = {*TABLES, "similarity_flops", "category_figures"}  # in tests/studies


def without_files():
    """Each recipe of the page with the flags of its rows, but for the names of files."""
    found = {}
    for _, recipe, *words in RECIPES:
        flags = iter(words)
        kept = [word for word in flags if not (word in FILES and next(flags))]
        if Path(recipe).stem not in TESTED and not set(kept) & set(OF_RUNS):
            found[" ".join([Path(recipe).stem, *kept])] = None
    return list(found)


@pytest.fixture
def forgotten(forget):
    """The models of all rows together would take 20 GB."""
    yield
    forget()


@pytest.mark.very_slow  # one run of each family is in tests/recipes
@pytest.mark.usefixtures("forgotten", "one_eagerly")
@pytest.mark.parametrize("line", without_files())
def test_every_row_runs_in_small(line, tmp_path, monkeypatch):
    """Rows of `ablations.py` are rows of these recipes; their sweeps have tests of their own."""
    recipe, *flags = line.split()
    scenes = toy_scenes.generate(tmp_path / "scenes", num_images=40, image_size=32, region_dim=16)
    monkeypatch.setattr(toy_scenes, "generate", lambda root_of_recipes, **sizes: scenes)
    module = module_of(recipe)
    fields = {field.name for field in dataclasses.fields(module.Settings)}
    small = {name: value for name, value in SMALL.items() if name in fields}
    if recipe == "pcme_2d":  # its batches hold ten captions of a class
        small["batch_size"] = 20
    small = [f"--{name.replace('_', '-')}={value}" for name, value in small.items()]
    if "dive_flickr30k" in line:
        small.append("--captions-per-image=2")
    out = tmp_path / "run"
    module.main([*small, *flags, "--smoke", f"--out={out}"])
    assert RunFolder.existing(out).finished
