"""Writes the help of every recipe, which `halo train RECIPE --help` prints without Keras, and its
flags, which `halo train` checks without Keras.

    python -m tools.recipe_help

Run it again when a setting of a recipe has changed; `tests/recipes/test_flags.py` compares.
"""

import contextlib
import importlib
import io
import json
import os
import sys
from pathlib import Path

from halo_search.cli import main as halo
from halo_search.cli.parser import OneLineParser, run
from zoo import cli

FOLDER = "help"
_WIDTH = "100"  # columns


def main(argv=None):
    OneLineParser(prog="python -m tools.recipe_help", description=__doc__).parse_args(argv)
    folder = halo.applications_folder() / "recipes" / FOLDER
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name in halo.recipes():
        (folder / f"{name}.txt").write_text(help_of(name), encoding="utf-8")
        (folder / f"{name}.json").write_text(flags_of(name), encoding="utf-8")
    print(f"{folder}: {len(halo.recipes())} recipes")


def flags_of(name: str) -> str:
    """The flags of a recipe as JSON, one a line."""
    flags = cli.flags_of(_module(name).Settings)
    lines = [json.dumps(flag._asdict()) for flag in flags]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _module(name):
    recipes = str(Path(halo.applications_folder()) / "recipes")
    if recipes not in sys.path:
        sys.path.insert(0, recipes)
    return importlib.import_module(name)


def help_of(name: str) -> str:
    """What the recipe itself prints for `--help`."""
    module, printed = _module(name), io.StringIO()
    before = sys.argv, os.environ.get("COLUMNS")
    sys.argv, os.environ["COLUMNS"] = [f"halo train {name}"], _WIDTH
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            module.main(["--help"])
    finally:
        sys.argv = before[0]
        os.environ.pop("COLUMNS")
        if before[1] is not None:
            os.environ["COLUMNS"] = before[1]
    return printed.getvalue()


if __name__ == "__main__":
    run(main)
