"""The commands of `halo confidence`."""

import sys

from zoo import similarities
from zoo.errors import InputError
from zoo.evaluation.calibration import same_split
from zoo.evaluation.confidence_study import confidence_study, study_table, summarise_studies
from zoo.evaluation.held_out import make_probes
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import data_of, open_run
from zoo.files import RunFolder, write_text


def main(options):
    {"measure": confidence, "probes": probes}[options.command](options)
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


def confidence(options):
    """The study of one or several runs: prints its table, and writes both into a folder."""
    if options.divisions < 1:
        raise InputError(f"--divisions must be at least 1; received {options.divisions}")
    publish("confidence", options, _confidence_of, study_table)


def publish(name, options, study_of, table_of, as_one=False):
    """Studies every run, or all as one, prints the table, and writes both into a folder.

    Args:
        name: of the files.
        options: of the command line: `runs` and `out`, and what `study_of` reads.
        study_of: function from names of runs and the options to a dict of figures.
        table_of: function from such dicts to Markdown.
        as_one: whether all runs are one model.
    """
    studies = {}
    for names in [options.runs] if as_one else [[one] for one in options.runs]:
        for one in names:
            data_of(one)  # refuses what is no run before anything is said of it
        print(f"  {' and '.join(names)}: encoding", file=sys.stderr)
        studies[" and ".join(names)] = study_of(names, options)
    result, studies = {"runs": studies}, list(studies.values())
    if len(studies) > 1:
        result["all"] = summarise_studies(studies)
    table = table_of(studies)
    print(table, end="")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        RunFolder(options.out).write_json(f"{name}.json", result)
        write_text(options.out / f"{name}.md", table)
        print(f"Everything is in {options.out}")


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


def ranking(model, name):
    """The similarity to rank by: the model's own for `"own"`, else one of `similarities.NAMES`.

    Raises:
        InputError: if there is none of that name, or not for this model.
    """
    if name == "own":
        return model.similarity
    try:
        return similarities.get(name, model)
    except (ValueError, TypeError) as error:
        raise InputError(f"--ranking: {error}") from error
