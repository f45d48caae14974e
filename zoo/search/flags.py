"""The flags of `python -m zoo.search`."""

import argparse
from pathlib import Path

import zoo
from zoo.cli import OneLineParser, program
from zoo.search.kinds import KINDS


def _similarity(name):
    try:
        zoo.similarities.check_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return name


def parser(description):
    """The parser of both commands.

    Args:
        description: text above the flags.
    """
    whole = OneLineParser(
        prog=program("python -m zoo.search"),
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(dest="command", required=True)
    made = commands.add_parser("build", help="encode and index")
    made.add_argument(
        "source", type=Path, help="folder, CSV, TSV, vectors, or text file of captions"
    )
    made.add_argument("out", type=Path, help="folder to write or to resume")
    made.add_argument("--model", required=True, help="a preset's name, or a run folder")
    made.add_argument("--captions", action="store_true", help="the items are captions")
    made.add_argument("--column", help="of a table (default: image or caption)")
    made.add_argument(
        "--names", metavar="FILE", help="names of the rows of a file of vectors: text, FILE:COLUMN"
    )
    made.add_argument("--kind", choices=KINDS, default="flat")
    made.add_argument(
        "--similarity",
        type=_similarity,
        metavar="NAME",
        help=f"{', '.join(zoo.similarities.NAMES)} (default: the model's own)",
    )
    made.add_argument("--candidates", type=int, help="how many the similarity ranks itself")
    made.add_argument(
        "--calibration",
        metavar="RUN",
        help="run folder whose calibration says how sure answers are (default: the model's own)",
    )
    made.add_argument("--skip-bad", action="store_true", help="leave out unreadable images")
    made.add_argument("--shard-size", type=int, default=4096, help="items a shard (default 4096)")
    made.add_argument("--batch-size", type=int, default=64, help="items at once (default 64)")
    find = commands.add_parser("query", help="search")
    find.add_argument("folder", type=Path, help="what `build` wrote")
    find.add_argument("text", nargs="?", help="a caption")
    find.add_argument("--image", help="an image file, instead of a text")
    find.add_argument("--vector", metavar="FILE", help="stored vectors, instead of a text")
    find.add_argument("--row", type=int, default=0, help="which of them (default 0)")
    find.add_argument("-k", type=int, default=10, help="how many (default 10)")
    find.add_argument("--max-uncertainty", type=float, help="leave out items less sure than that")
    find.add_argument("--model", help="if it has moved since `build`")
    return whole
