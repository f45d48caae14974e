"""The command line of what `python -m zoo.report` does to run folders."""

import argparse
from pathlib import Path

from zoo.cli import OneLineParser


def runs_parser(command, description):
    """A parser of `python -m zoo.report COMMAND RUN [RUN ...]`, to which options can be added."""
    parser = OneLineParser(
        prog=f"python -m zoo.report {command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    return parser
