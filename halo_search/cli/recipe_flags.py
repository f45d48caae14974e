"""The flags of a recipe as JSON values: `halo train` reads them before the recipe imports Keras."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from halo_search.cli import bounds
from halo_search.cli.parser import OneLineParser, path_of, unknown_flag

_KINDS = {"int": int, "float": float, "str": str, "Path": path_of, "bool": bool}


class Flag(NamedTuple):
    """One flag.

    Attributes:
        name: as it is typed, `"--learning-rate"`.
        kind: of a value: `"int"`, `"float"`, `"str"`, `"Path"`, or `"bool"` for a pair of flags.
        choices: what a value may be, or None.
        has_many: whether it takes several values.
        may_be_none: whether "none" is a value.
        bare: the value of the bare flag, or None where there has to be one.
        is_required: whether it has to be given.
        bounds: of a number, a key of `halo_search.cli.bounds.BOUNDS`, else None.
    """

    name: str
    kind: str
    choices: Sequence[Any] | None = None
    has_many: bool = False
    may_be_none: bool = False
    bare: Any = None
    is_required: bool = False
    bounds: str | None = None

    def add(self, parser: argparse.ArgumentParser, help: str = "") -> None:
        """Adds the flag to a parser."""
        options: dict[str, Any] = {"required": self.is_required, "help": help}
        if self.has_many:
            options.update(nargs="+", action=_Tuple)
        if self.kind == "bool":  # with None as the third value, where neither is given
            options["action"] = argparse.BooleanOptionalAction
        else:
            options["type"] = self._converter()
            options["metavar"] = self.kind.upper()
        if self.choices is not None:
            options["metavar"] = "{" + ",".join(map(str, self.choices)) + "}"
            options["choices"] = (*self.choices, *([None] if self.may_be_none else []))
        if self.bare is not None:
            options.update(nargs="?", const=self.bare)
        parser.add_argument(self.name, **options)

    def _converter(self):
        """The function that reads a text; "none" is None for an optional flag."""
        kind = _KINDS[self.kind]

        def convert(text):
            return None if self.may_be_none and text.lower() == "none" else kind(text)

        convert.__name__ = self.kind  # argparse names it in its message
        return convert

    @property
    def field(self) -> str:
        """The name of the setting."""
        return self.name.removeprefix("--").replace("-", "_")


class _Tuple(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, tuple(values))


def parser_of(description: str | None = None) -> OneLineParser:
    """A parser to which flags are added: what was not given is not in its namespace."""
    return OneLineParser(
        description=description, allow_abbrev=False, argument_default=argparse.SUPPRESS
    )


def given(
    parser: OneLineParser, flags: Sequence[Flag], argv: Sequence[str] | None
) -> dict[str, Any]:
    """The settings that were given, by name. An unknown flag, or a number out of its bounds, ends
    the process with one line and exit code 2."""
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(unknown_flag(unknown[0], [flag.name for flag in flags]))
    values = vars(namespace)
    for flag in flags:
        if flag.bounds is not None and flag.field in values:
            try:
                bounds.check(flag.name, values[flag.field], flag.bounds)
            except ValueError as error:
                parser.error(str(error))
    return values


def check(path: Path, argv: Sequence[str]) -> None:
    """Refuses words that no recipe with the flags in a file takes, as `given`."""
    parser = parser_of()
    flags = [Flag(**flag) for flag in json.loads(path.read_text(encoding="utf-8"))]
    for flag in flags:
        flag.add(parser)
    given(parser, flags, argv)
