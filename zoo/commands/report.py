"""Writes reports on runs.

    halo report runs/pcme_cub                       # runs/pcme_cub/report/report.html
    halo report runs/one runs/other --out both      # side by side
    halo report toy_birds_pfe --out preset         # a preset

A report shows how well a run retrieves and how good its uncertainties are: one HTML page with
everything in it, its figures as PNG, and its numbers as JSON, each with n and a 95 % bootstrap
interval.
"""

import argparse
import importlib
from pathlib import Path

from zoo.choices import RESAMPLES, SIMILARITIES
from zoo.cli import OneLineParser


def main(argv=None):
    options = _parser().parse_args(argv)
    importlib.import_module("zoo.registered")  # after the flags: it imports Keras
    importlib.import_module("zoo.report.command").main(options)


def _parser():
    parser = OneLineParser(
        prog="halo report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names of presets")
    parser.add_argument("--out", type=Path, help="folder to write; default: RUN/report")
    parser.add_argument("--data-dir", type=Path, help="the runs' data set, if it has moved")
    parser.add_argument(
        "--ranking", default="own", help=f"own (default), {', '.join(SIMILARITIES)}"
    )
    parser.add_argument(
        "--items", type=int, default=256, help="images and captions encoded anew (default 256)"
    )
    parser.add_argument(
        "--resamples",
        type=int,
        default=RESAMPLES,
        help=f"bootstrap (default {RESAMPLES})",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all randomness (default 0)")
    return parser
