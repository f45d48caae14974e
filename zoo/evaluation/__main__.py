"""Measures how sure a run's answers are, and whether that is true.

    python -m zoo.evaluation confidence runs/pcme_cub                  # signals and probabilities
    python -m zoo.evaluation confidence runs/seed-0 runs/seed-1 --out study   # means ± deviations

`confidence` compares σ, the scores' own signals and calibrated probabilities, learnt on the
validation split, on half of the test queries and on half of the test classes.
"""

import argparse
import sys
from pathlib import Path

from zoo import similarities
from zoo.cli import OneLineParser, program, run
from zoo.errors import InputError
from zoo.evaluation.calibration import same_split
from zoo.evaluation.confidence_study import (
    DIVISIONS,
    confidence_study,
    study_table,
    summarise_studies,
)
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import open_run
from zoo.files import RunFolder, write_text


def main(argv=None):
    options = _parser().parse_args(argv)
    if options.divisions < 1:
        raise InputError(f"--divisions must be at least 1; received {options.divisions}")
    confidence(options)
    return 0


def confidence(options):
    """The study of one or several runs: prints its table, and writes both into a folder."""
    studies = []
    for name in options.runs:
        print(f"  {name}: encoding", file=sys.stderr)
        studies.append(_study(name, options))
    result = {"runs": dict(zip(options.runs, studies, strict=True))}
    if len(studies) > 1:
        result["all"] = summarise_studies(studies)
    table = study_table(studies)
    print(table, end="")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        RunFolder(options.out).write_json("confidence.json", result)
        write_text(options.out / "confidence.md", table)
        print(f"Everything is in {options.out}")


def _study(name, options):
    model, test = open_run(name, options.data_dir, held_out=options.held_out)
    _, held_out = open_run(name, options.data_dir, split="validation")
    try:
        similarity = (
            model.similarity
            if options.ranking == "own"
            else similarities.get(options.ranking, model)
        )
    except (ValueError, TypeError) as error:
        raise InputError(f"--ranking: {error}") from error
    splits = [test] if same_split(held_out, test) else [test, held_out]
    encoded = [encode(model, split.records, split.source) for split in splits]
    try:
        return confidence_study(
            encoded[0], similarity, *encoded[1:], divisions=options.divisions, seed=options.seed
        )
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def _parser():
    parser = OneLineParser(
        prog=program("python -m zoo.evaluation"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    study = commands.add_parser("confidence", help="signals and calibrated probabilities")
    study.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names of presets")
    study.add_argument("--out", type=Path, help="folder for confidence.json and confidence.md")
    study.add_argument("--data-dir", type=Path, help="the runs' data set, if it has moved")
    study.add_argument(
        "--held-out",
        metavar="SPLIT",
        help="what to measure on, if not the run's own: after training with --held-out val1, whose "
        "validation split has unseen classes, it is test",
    )
    study.add_argument(
        "--ranking", default="own", help=f"own (default), {', '.join(similarities.NAMES)}"
    )
    study.add_argument(
        "--divisions", type=int, default=DIVISIONS, help=f"into halves (default {DIVISIONS})"
    )
    study.add_argument("--seed", type=int, default=0, help="of all randomness (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
