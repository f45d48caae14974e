"""The command line of the tools that read run folders."""

from pathlib import Path

from zoo.cli import OneLineParser


def runs_parser(command, description):
    """A parser of `python -m tools.COMMAND RUN [RUN ...]`, to which options can be added."""
    parser = OneLineParser(
        prog=f"python -m tools.{command}",
        description=description,
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    return parser
