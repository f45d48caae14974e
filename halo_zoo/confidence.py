"""Writes the probes of a finished run or preset again.

    halo confidence probes toy_birds_pfe --out FOLDER

Probes are held-out pairs, by which a run is calibrated on any gallery.
"""

import importlib
from pathlib import Path

from zoo.cli import OneLineParser
from zoo.cli.bounds import check_path, check_run
from zoo.errors import InputError


def main(argv=None):
    options = _parser().parse_args(argv)
    check_run(options.run)
    check_path(options.data_dir, f"--data-dir {options.data_dir}: no such folder")
    importlib.import_module("zoo.training.registered")  # after the flags: it imports Keras
    probes(options)


def probes(options):
    """The probes of one run or preset, written into its folder or another."""
    from zoo.evaluation.probes import make_probes
    from zoo.evaluation.retrieval import encode
    from zoo.evaluation.runs import open_run
    from zoo.files.written import Written
    from zoo.models.run_folder import RunFolder

    if options.out is not None and not RunFolder(options.out).is_run:
        Written(options.out).claim(RunFolder(options.out).probes_path.name)
    model, train = open_run(options.run, options.data_dir, "train")
    _, validation = open_run(options.run, options.data_dir, "validation")
    out = options.out or RunFolder.existing(options.run).path
    seen = encode(model, validation.records, validation.source)
    try:
        found = make_probes(
            model, seen, train, options.seed, images=options.images, captions=options.captions
        )
    except ValueError as error:
        raise InputError(f"{options.run}: {error}") from error
    path = RunFolder(out).probes_path
    found.save(path)
    print(f"{path}: {found.source}")


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
            f"--{side}", type=int, default=most, help=f"{side} at most (default {most})"
        )
    probes.add_argument("--data-dir", type=Path, help="data set, if it has moved")
    probes.add_argument("--seed", type=int, default=0, help="seed of all randomness (default 0)")
    return parser
