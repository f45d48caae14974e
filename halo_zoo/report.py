"""Writes reports on runs.

    halo report runs/pcme_cub                       # runs/pcme_cub/report/report.html
    halo report runs/one runs/other --out both      # side by side
    halo report toy_birds_pfe --out preset         # a preset

A report shows how well a run retrieves and how good its uncertainties are: one HTML page with
everything in it, its figures as PNG, and its numbers as JSON, each with n and a 95 % bootstrap
interval.
"""

import sys
from pathlib import Path

from zoo.cli import OneLineParser
from zoo.cli.bounds import RESAMPLES, SIMILARITIES
from zoo.errors import InputError


def main(argv=None):
    options = _parser().parse_args(argv)
    import zoo.training.registered  # after the flags: it imports Keras
    from zoo.files.run_folder import RunFolder
    from zoo.report.page import write_report
    from zoo.similarities.by_name import check_name

    if options.ranking != "own":
        try:
            check_name(options.ranking)
        except ValueError as error:
            raise InputError(f"--ranking must be 'own' or a similarity: {error}") from error
    for name in ("items", "resamples"):
        if getattr(options, name) < 2:
            raise InputError(f"--{name} must be at least 2; received {getattr(options, name)}")
    out = options.out
    if out is None:
        if len(options.runs) > 1 or options.runs[0] in zoo.list_presets():
            raise InputError("--out must name a folder for several runs, or for a preset")
        out = RunFolder.existing(options.runs[0]).path / "report"
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    runs = [
        _read(name, label, options)
        for name, label in zip(options.runs, _names(options.runs), strict=True)
    ]
    print(f"Everything is in {write_report(runs, out, tell=_tell)}")
    return 0


def _read(name, label, options):
    from zoo.evaluation import open_run, probes_of
    from zoo.report.reported_run import of_model

    _tell(f"{label}: encoding")
    model, split = open_run(name, options.data_dir)
    return of_model(
        model,
        split,
        label,
        options.ranking,
        probes=probes_of(name) if options.ranking == "own" else None,
        items=options.items,
        resamples=options.resamples,
        seed=options.seed,
    )


def _names(runs):
    """The last parts of the folders' names, the whole where two would have the same."""
    short = [Path(name).name or str(name) for name in runs]
    return short if len(set(short)) == len(short) else [str(name) for name in runs]


def _tell(name):
    print(f"  {name}", file=sys.stderr)


def _parser():
    parser = OneLineParser(
        prog="halo report",
        description=__doc__,
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names of presets")
    parser.add_argument("--out", type=Path, help="folder to write (default: RUN/report)")
    parser.add_argument("--data-dir", type=Path, help="data set of the runs, if it has moved")
    parser.add_argument(
        "--ranking",
        default="own",
        help=f"similarity to rank by: own (default), {', '.join(SIMILARITIES)}",
    )
    parser.add_argument(
        "--items",
        type=int,
        default=256,
        help="images and captions to encode for the detailed sections (default 256)",
    )
    parser.add_argument(
        "--resamples",
        type=int,
        default=RESAMPLES,
        help=f"bootstrap resamples (default {RESAMPLES})",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (default 0)")
    return parser
