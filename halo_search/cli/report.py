"""Writes the report on a run.

    halo report runs/pcme_cub                       # runs/pcme_cub/report/report.md
    halo report toy_birds_pfe --out preset          # a preset

The report shows how well a run retrieves and how good its confidence and uncertainties are:
`report.md` with the verdict, tables and what to do next, and its figures as PNG beside it.
"""

from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import OneLineParser
from halo_search.cli.run_flags import add_run, check_run_flags
from halo_search.towers import keras_models


def main(argv=None):
    """Writes a report."""
    options = _parser().parse_args(argv)
    check_run_flags(options)
    keras_models().report(options)


def _parser():
    parser = OneLineParser(
        prog="halo report",
        description=__doc__,
        allow_abbrev=False,
    )
    add_run(parser, out="folder to write (default: RUN/report)")
    parser.add_argument(
        "--ranking",
        default="own",
        help="similarity to rank by: own (default), or a name of zoo.similarities",
    )
    parser.add_argument(
        "--resamples",
        type=whole_number(2),
        default=500,
        help="bootstrap resamples (default 500)",
    )
    return parser
