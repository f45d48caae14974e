"""What `halo confidence` does."""

import sys

from zoo import similarities
from zoo.errors import InputError
from zoo.evaluation.calibration import same_split
from zoo.evaluation.confidence_study import (
    confidence_study,
    study_table,
    summarise_studies,
)
from zoo.evaluation.expansion import (
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


def main(options):
    """Calls the study that was named."""
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
