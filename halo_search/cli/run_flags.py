"""The flags of commands that open a finished run again."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from halo_search.cli.checks import check_data_dir, check_run
from halo_search.cli.numbers import whole_number


def add_run(command: ArgumentParser, out: str) -> None:
    """Adds RUN, `--out` with a help of its own, `--data-dir` and `--seed`."""
    command.add_argument("run", metavar="RUN", help="run folder, or name of a preset")
    command.add_argument("--out", type=Path, help=out)
    command.add_argument("--data-dir", type=Path, help="data set of the run, if it has moved")
    command.add_argument(
        "--seed",
        type=whole_number(0, 2**32 - 1),
        default=0,
        help="seed of all randomness (default 0)",
    )


def check_run_flags(options: Namespace) -> None:
    """Raises InputError if the run or its data is not there, before Keras is imported."""
    check_run(options.run)
    check_data_dir(options.data_dir)
