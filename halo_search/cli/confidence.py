"""Writes the probes of a finished run or preset again.

    halo confidence probes toy_birds_pfe --out FOLDER

Probes are held-out pairs, by which a run is calibrated on any gallery.
"""

from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import OneLineParser
from halo_search.cli.run_flags import add_run, check_run_flags
from halo_search.towers import keras_models


def main(argv=None):
    """Writes the probes of a run."""
    options = _parser().parse_args(argv)
    check_run_flags(options)
    keras_models().write_probes(options)


def _parser():
    parser = OneLineParser(
        prog="halo confidence",
        description=__doc__,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    probes = commands.add_parser("probes", help="write the probes again")
    add_run(probes, out="folder to write (default: the run's)")
    for side, most in (("images", 1000), ("captions", 2000)):
        probes.add_argument(
            f"--{side}", type=whole_number(), default=most, help=f"{side} at most (default {most})"
        )
    return parser
