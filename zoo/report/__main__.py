"""Reports on runs, and tables of their results.

    python -m zoo.report runs/pcme_cub                       # runs/pcme_cub/report/report.html
    python -m zoo.report runs/one runs/other --out both      # side by side
    python -m zoo.report toy_birds_pcme --out preset         # a preset
    python -m zoo.report models runs/* --out docs/runs.md    # a table, see `models --help`
    python -m zoo.report keep runs/* --out docs/runs         # what such a table is made of

A report says what a run's uncertainties are worth: one HTML page that needs nothing else, its
figures as PNG, and its numbers as JSON, each with n and a 95 % bootstrap interval.
"""

import argparse
import sys
from pathlib import Path

import zoo
from zoo import similarities
from zoo.cli import OneLineParser, program, run
from zoo.errors import InputError
from zoo.evaluation import open_run
from zoo.files.run_folder import RunFolder
from zoo.report import kept_runs, models_page, reported_run
from zoo.report.bootstrap import RESAMPLES
from zoo.report.writing import write_report

COMMANDS = {"models": models_page.main, "keep": kept_runs.main}


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv and argv[0] in COMMANDS:
        return COMMANDS[argv[0]](argv[1:])
    options = _parser().parse_args(argv)
    if options.ranking != "own" and options.ranking not in similarities.NAMES:
        known = ", ".join(("own", *similarities.NAMES))
        raise InputError(f"--ranking must be one of {known}; received {options.ranking!r}")
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
    _tell(f"{label}: encoding")
    model, held_out = open_run(name, options.data_dir)
    return reported_run.of_model(
        model,
        held_out,
        label,
        options.ranking,
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
        prog=program("python -m zoo.report"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names of presets")
    parser.add_argument("--out", type=Path, help="folder to write; default: RUN/report")
    parser.add_argument("--data-dir", type=Path, help="the runs' data set, if it has moved")
    parser.add_argument(
        "--ranking", default="own", help=f"own (default), {', '.join(similarities.NAMES)}"
    )
    parser.add_argument(
        "--items", type=int, default=256, help="images and captions encoded anew (default 256)"
    )
    parser.add_argument(
        "--resamples", type=int, default=RESAMPLES, help=f"bootstrap (default {RESAMPLES})"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
