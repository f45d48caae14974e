"""Writes the probes of a finished run or preset again.

    halo confidence probes toy_birds_pfe --out FOLDER

Probes are held-out pairs, by which a run is calibrated on any gallery.
"""

from pathlib import Path

from halo_search.cli.checks import check_path, check_run
from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import OneLineParser
from halo_search.towers import keras_models


def main(argv=None):
    """Writes the probes of a run."""
    options = _parser().parse_args(argv)
    check_run(options.run)
    check_path(options.data_dir, f"--data-dir {options.data_dir}: no such folder")
    keras_models().write_probes(options)


def _parser():
    parser = OneLineParser(
        prog="halo confidence",
        description=__doc__,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    probes = commands.add_parser("probes", help="write the probes again")
    probes.add_argument("run", metavar="RUN", help="run folder, or the name of a preset")
    probes.add_argument("--out", type=Path, help="folder to write (default: the run's)")
    for side, most in (("images", 1000), ("captions", 2000)):
        probes.add_argument(
            f"--{side}", type=whole_number(), default=most, help=f"{side} at most (default {most})"
        )
    probes.add_argument("--data-dir", type=Path, help="data set, if it has moved")
    probes.add_argument(
        "--seed",
        type=whole_number(0, 2**32 - 1),
        default=0,
        help="seed of all randomness (default 0)",
    )
    return parser
