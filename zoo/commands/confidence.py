"""Measures how sure a run's answers are, and whether that is true.

    python -m zoo.evaluation confidence runs/pcme_cub                  # signals and probabilities
    python -m zoo.evaluation confidence runs/seed-0 runs/seed-1 --out study   # means ± deviations

    python -m zoo.evaluation expansion runs/seed-0 runs/seed-1         # asking the gallery twice
    python -m zoo.evaluation expansion runs/seed-0 runs/seed-1 --together   # of both as one model
    python -m zoo.evaluation unknown runs/pcme_cub --photos PHOTOS     # questions it does not know
    python -m zoo.evaluation probes toy_birds_pfe --out FOLDER        # its probes anew

`confidence` compares σ, the scores' own signals and calibrated probabilities, learnt on the
validation split, on half of the test queries and on half of the test classes. `expansion` compares
retrieval with that by an augmented gallery and by expanded queries. `unknown` asks a
calibrated model invented words, other languages, plain colours and, if given, other photos, and
says which share it declines, beside that of the test split's own queries. `probes` writes the
held-out pairs of a finished run or preset again, by which it is calibrated on any gallery.
"""

import argparse
import importlib
from pathlib import Path

from zoo.choices import DIVISIONS, NEIGHBOURS, SIMILARITIES, WEIGHT
from zoo.cli import OneLineParser, program, run


def main(argv=None):
    options = _parser().parse_args(argv)
    importlib.import_module("zoo.evaluation.command").main(options)


def _parser():
    parser = OneLineParser(
        prog=program("python -m zoo.evaluation"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    studies = {}
    for name, what in (
        ("confidence", "signals and calibrated probabilities"),
        ("expansion", "retrieval that asks the gallery twice"),
    ):
        study = studies[name] = commands.add_parser(name, help=what)
        study.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or presets")
        study.add_argument("--out", type=Path, help=f"folder for {name}.json and {name}.md")
        study.add_argument("--data-dir", type=Path, help="the runs' data set, if it has moved")
        study.add_argument(
            "--ranking", default="own", help=f"own (default), {', '.join(SIMILARITIES)}"
        )
    studies["expansion"].add_argument(
        "--together", action="store_true", help="take the runs as one model, by their mean cosine"
    )
    studies["expansion"].add_argument(
        "--neighbours",
        type=int,
        default=NEIGHBOURS,
        help=f"averaged (default {NEIGHBOURS})",
    )
    studies["expansion"].add_argument(
        "--weight",
        type=float,
        default=WEIGHT,
        help=f"of the neighbours (default {WEIGHT})",
    )
    studies["confidence"].add_argument(
        "--held-out",
        metavar="SPLIT",
        help="what to measure on, if not the run's own: after training with --held-out val1, whose "
        "validation split has unseen classes, it is test",
    )
    studies["confidence"].add_argument(
        "--divisions",
        type=int,
        default=DIVISIONS,
        help=f"into halves (default {DIVISIONS})",
    )
    studies["confidence"].add_argument(
        "--seed", type=int, default=0, help="of all randomness (default 0)"
    )
    for name, what in (
        ("unknown", "questions that the model does not know"),
        ("probes", "write the probes again"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("run", metavar="RUN", help="a run folder, or the name of a preset")
        command.add_argument("--data-dir", type=Path, help="the run's data set, if it has moved")
        command.add_argument("--seed", type=int, default=0, help="of all randomness (default 0)")
        command.add_argument("--out", type=Path, help="folder to write")
        if name == "unknown":
            command.add_argument("--photos", type=Path, help="folder of photos of other things")
        else:
            for side, most in (("images", 1000), ("captions", 2000)):
                command.add_argument(
                    f"--{side}", type=int, default=most, help=f"how many at most (default {most})"
                )
    return parser


if __name__ == "__main__":
    run(main)
