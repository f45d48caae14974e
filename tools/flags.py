"""Every flag of every recipe: its default, values on the toy data and with --smoke, its source.

    python -m tools.flags                                   # on the terminal
    python -m tools.flags --out tests/golden/flags.txt      # what tests/recipes/test_flags.py has

A line is a flag as `halo train RECIPE --help` says it; below it are the recipes that have it so.
"""

import dataclasses
import importlib
import typing
from dataclasses import dataclass
from pathlib import Path

import halo_search.cli.main
from halo_search.files.atomic import write_text
from tools import paper_settings  # noqa: F401 (puts the recipes on the path)
from zoo import cli
from zoo.cli import setting


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where to write to."""

    out: Path | None = setting(None, "file to write; default: the terminal")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.out is None:
        print(text(), end="")
    else:
        write_text(settings.out, text())


def text() -> str:
    """All flags, sorted; each once, with the recipes that have it."""
    recipes_of_flag: dict[str, list[str]] = {}
    for recipe in halo_search.cli.main.recipes():
        for line in lines(importlib.import_module(recipe).Settings):
            recipes_of_flag.setdefault(line, []).append(recipe)
    parts = [f"{line}\n    {' '.join(names)}\n" for line, names in sorted(recipes_of_flag.items())]
    return "".join(parts)


def lines(settings_class) -> list[str]:
    """The flags of a settings class, a line each."""
    hints = typing.get_type_hints(settings_class)
    return [
        _line(field, hints[field.name])
        for field in dataclasses.fields(settings_class)
        if field.init
    ]


def _line(field, hint):
    parts = [f"--{field.name.replace('_', '-')}: {_type_in_words(hint)} = {field.default!r}"]
    parts += [
        f"{name} {field.metadata[name]!r}"
        for name in ("toy", "smoke", "source", "identity", "const")
        if name in field.metadata
        and field.metadata[name] not in ("", None)
        and not (name == "identity" and field.metadata[name])
    ]
    return "; ".join([*parts, field.metadata.get("help", "")])


def _type_in_words(hint):
    """A type hint as it is written: `int | None`, also where Python calls it `Optional[int]`."""
    if typing.get_origin(hint) is typing.Union:
        return " | ".join(map(_type_in_words, typing.get_args(hint)))
    if hint is type(None):
        return "None"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


if __name__ == "__main__":
    cli.run(main)
