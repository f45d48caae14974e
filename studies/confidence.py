"""How far signals and probabilities tell right answers from wrong ones, for one or several runs.

    python -m studies.confidence runs/pcme_cub                            # signals, probabilities
    python -m studies.confidence runs/seed-0 runs/seed-1 --out study      # means ± deviations

Compares σ, the scores' own signals and calibrated probabilities, learnt on the validation split, on
half of the test queries and on half of the test classes.
"""

from pathlib import Path

from studies.confidence_study import confidence_study, study_table
from studies.publishing import publish, ranking
from zoo.cli import OneLineParser, run
from zoo.cli.bounds import DIVISIONS, SIMILARITIES
from zoo.errors import InputError
from zoo.evaluation.calibration import same_split
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import open_run


def main(argv=None):
    options = _parser().parse_args(argv)
    if options.divisions < 1:
        raise InputError(f"--divisions must be at least 1; received {options.divisions}")
    publish("confidence", options, _confidence_of, study_table)


def _confidence_of(names, options):
    (name,) = names
    model, test = open_run(name, options.data_dir, held_out=options.held_out)
    _, held_out = open_run(name, options.data_dir, split="validation")
    similarity = ranking(model, options.ranking)
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
        prog="python -m studies.confidence",
        description=__doc__,
        allow_abbrev=False,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or presets")
    parser.add_argument("--out", type=Path, help="folder for confidence.json and confidence.md")
    parser.add_argument(
        "--ranking", default="own", help=f"own (default), {', '.join(SIMILARITIES)}"
    )
    parser.add_argument(
        "--held-out",
        metavar="SPLIT",
        help="split to measure on, if not the run's own: `test` after training with --held-out "
        "val1, whose validation split has unseen classes",
    )
    parser.add_argument(
        "--divisions", type=int, default=DIVISIONS, help=f"into halves (default {DIVISIONS})"
    )
    parser.add_argument("--data-dir", type=Path, help="data set, if it has moved")
    parser.add_argument("--seed", type=int, default=0, help="seed of all randomness (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
