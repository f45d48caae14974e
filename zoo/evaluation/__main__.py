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
from zoo.evaluation.expansion import (
    NEIGHBOURS,
    WEIGHT,
    check,
    expansion_study,
    expansion_table,
)
from zoo.evaluation.held_out import make_probes
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import open_run, probes_of, resizing_of
from zoo.evaluation.together import together
from zoo.evaluation.unknown_study import unknown_study
from zoo.files import RunFolder, write_text


def main(argv=None):
    options = _parser().parse_args(argv)
    commands = {
        "confidence": confidence,
        "expansion": expansion,
        "unknown": unknown,
        "probes": probes,
    }
    commands[options.command](options)
    return 0


def probes(options):
    """The probes of one run or preset, written into its folder or another."""
    model, train = open_run(options.run, options.data_dir, "train")
    _, validation = open_run(options.run, options.data_dir, "validation")
    out = options.out or RunFolder.existing(options.run).path
    out.mkdir(parents=True, exist_ok=True)
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


def unknown(options):
    """The shares of questions that one run declines because it does not know them."""
    model, test = open_run(options.run, options.data_dir)
    own = probes_of(options.run)
    if own is None or not own.known:
        raise InputError(
            f"{options.run}: has no probes that know what training has seen; make them with "
            "`python -m zoo.evaluation probes`"
        )
    encoded = encode(model, test.records, test.source)
    result = unknown_study(
        model,
        own.known,
        encoded,
        resizing_of(options.run),
        options.photos,
        seed=options.seed,
    )
    for name, one in result.items():
        print(f"{name}: declined {one['declined']} of {one['queries']} ({one['share']:.1%})")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        RunFolder(options.out).write_json("unknown.json", result)


def confidence(options):
    """The study of one or several runs: prints its table, and writes both into a folder."""
    if options.divisions < 1:
        raise InputError(f"--divisions must be at least 1; received {options.divisions}")
    _publish(options, _confidence_of, study_table)


def expansion(options):
    """Retrieval of one or several runs by an augmented gallery and by expanded queries."""
    if options.together and options.ranking != "own":
        raise InputError("--ranking must not be given with --together, which ranks by the cosine")
    _publish(options, _expansion_of, expansion_table, options.together)


def _publish(options, study_of, table_of, as_one=False):
    """Studies every run, or all as one, prints the table, and writes both into a folder."""
    studies = {}
    for names in [options.runs] if as_one else [[name] for name in options.runs]:
        print(f"  {' and '.join(names)}: encoding", file=sys.stderr)
        studies[" and ".join(names)] = study_of(names, options)
    result, studies = {"runs": studies}, list(studies.values())
    if len(studies) > 1:
        result["all"] = summarise_studies(studies)
    table = table_of(studies)
    print(table, end="")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        RunFolder(options.out).write_json(f"{options.command}.json", result)
        write_text(options.out / f"{options.command}.md", table)
        print(f"Everything is in {options.out}")


def _expansion_of(names, options):
    splits = []
    try:
        for name in names:
            model, test = open_run(name, options.data_dir)
            similarity = _ranking(model, options)
            fewest = min(test.records.num_images, test.records.num_captions)
            check(options.neighbours, options.weight, fewest)  # before minutes of encoding
            splits.append(encode(model, test.records, test.source))
        if options.together:
            splits, similarity = [together(splits)], similarities.Cosine()
        return expansion_study(*splits, similarity, options.neighbours, options.weight)
    except ValueError as error:
        raise InputError(f"{' and '.join(names)}: {error}") from error


def _confidence_of(names, options):
    (name,) = names
    model, test = open_run(name, options.data_dir, held_out=options.held_out)
    _, held_out = open_run(name, options.data_dir, split="validation")
    similarity = _ranking(model, options)
    splits = [test] if same_split(held_out, test) else [test, held_out]
    encoded = [encode(model, split.records, split.source) for split in splits]
    try:
        return confidence_study(
            encoded[0], similarity, *encoded[1:], divisions=options.divisions, seed=options.seed
        )
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def _ranking(model, options):
    """The similarity to rank by."""
    if options.ranking == "own":
        return model.similarity
    try:
        return similarities.get(options.ranking, model)
    except (ValueError, TypeError) as error:
        raise InputError(f"--ranking: {error}") from error


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
            "--ranking", default="own", help=f"own (default), {', '.join(similarities.NAMES)}"
        )
    studies["expansion"].add_argument(
        "--together", action="store_true", help="take the runs as one model, by their mean cosine"
    )
    studies["expansion"].add_argument(
        "--neighbours", type=int, default=NEIGHBOURS, help=f"averaged (default {NEIGHBOURS})"
    )
    studies["expansion"].add_argument(
        "--weight", type=float, default=WEIGHT, help=f"of the neighbours (default {WEIGHT})"
    )
    studies["confidence"].add_argument(
        "--held-out",
        metavar="SPLIT",
        help="what to measure on, if not the run's own: after training with --held-out val1, whose "
        "validation split has unseen classes, it is test",
    )
    studies["confidence"].add_argument(
        "--divisions", type=int, default=DIVISIONS, help=f"into halves (default {DIVISIONS})"
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
