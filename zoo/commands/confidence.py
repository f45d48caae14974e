"""Measures how sure a run's answers are, and whether that is true.

    halo confidence measure runs/pcme_cub                  # signals and probabilities
    halo confidence measure runs/seed-0 runs/seed-1 --out study   # means ± deviations
    halo confidence probes toy_birds_pfe --out FOLDER      # its probes anew

`measure` compares σ, the scores' own signals and calibrated probabilities, learnt on the
validation split, on half of the test queries and on half of the test classes. `probes` writes the
held-out pairs of a finished run or preset again, by which it is calibrated on any gallery.
"""

import argparse
import importlib
from pathlib import Path

from zoo.choices import DIVISIONS, SIMILARITIES
from zoo.cli import OneLineParser


def main(argv=None):
    options = _parser().parse_args(argv)
    importlib.import_module("zoo.registered")  # after the flags: it imports Keras
    importlib.import_module("zoo.evaluation.command").main(options)


def _parser():
    parser = OneLineParser(
        prog="halo confidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure", help="signals and calibrated probabilities")
    measure.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or presets")
    measure.add_argument("--out", type=Path, help="folder for confidence.json and confidence.md")
    measure.add_argument(
        "--ranking", default="own", help=f"own (default), {', '.join(SIMILARITIES)}"
    )
    measure.add_argument(
        "--held-out",
        metavar="SPLIT",
        help="what to measure on, if not the run's own: after training with --held-out val1, whose "
        "validation split has unseen classes, it is test",
    )
    measure.add_argument(
        "--divisions",
        type=int,
        default=DIVISIONS,
        help=f"into halves (default {DIVISIONS})",
    )
    probes = commands.add_parser("probes", help="write the probes again")
    probes.add_argument("run", metavar="RUN", help="a run folder, or the name of a preset")
    probes.add_argument("--out", type=Path, help="folder to write")
    for side, most in (("images", 1000), ("captions", 2000)):
        probes.add_argument(
            f"--{side}", type=int, default=most, help=f"how many at most (default {most})"
        )
    for command in (measure, probes):
        command.add_argument("--data-dir", type=Path, help="the data set, if it has moved")
        command.add_argument("--seed", type=int, default=0, help="of all randomness (default 0)")
    return parser
