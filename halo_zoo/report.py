"""Writes the report on a run.

    halo report runs/pcme_cub                       # runs/pcme_cub/report/report.md
    halo report toy_birds_pfe --out preset          # a preset

The report shows how well a run retrieves and how good its confidence and uncertainties are:
`report.md` with the verdict, tables and what to do next, and its figures as PNG beside it.
"""

from pathlib import Path

from zoo.cli import OneLineParser
from zoo.cli.bounds import RESAMPLES, SIMILARITIES, check_path, check_run
from zoo.errors import InputError


def main(argv=None):
    options = _parser().parse_args(argv)
    check_run(options.run)
    check_path(options.data_dir, f"--data-dir {options.data_dir}: no such folder")
    import zoo.training.registered  # after the flags: it imports Keras
    from zoo.evaluation import open_run, probes_of
    from zoo.models.run_folder import RunFolder
    from zoo.plots.report import write_report
    from zoo.similarities.by_name import check_name

    if options.ranking != "own":
        try:
            check_name(options.ranking)
        except ValueError as error:
            raise InputError(f"--ranking must be 'own' or a similarity: {error}") from error
    if options.resamples < 2:
        raise InputError(f"--resamples must be at least 2; received {options.resamples}")
    out = options.out
    if out is None:
        if options.run in zoo.list_presets():
            raise InputError("--out must name a folder for a preset")
        out = RunFolder.existing(options.run).path / "report"
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    model, split = open_run(options.run, options.data_dir)
    page = write_report(
        out,
        model,
        split,
        options.run,
        probes_of(options.run) if options.ranking == "own" else None,
        options.ranking,
        options.resamples,
        options.seed,
    )
    print(f"Everything is in {page}")
    return 0


def _parser():
    parser = OneLineParser(
        prog="halo report",
        description=__doc__,
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help="run folder, or name of a preset")
    parser.add_argument("--out", type=Path, help="folder to write (default: RUN/report)")
    parser.add_argument("--data-dir", type=Path, help="data set of the run, if it has moved")
    parser.add_argument(
        "--ranking",
        default="own",
        help=f"similarity to rank by: own (default), {', '.join(SIMILARITIES)}",
    )
    parser.add_argument(
        "--resamples",
        type=int,
        default=RESAMPLES,
        help=f"bootstrap resamples (default {RESAMPLES})",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (default 0)")
    return parser
