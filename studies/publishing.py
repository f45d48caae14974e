"""What studies of runs share: their command prints a table and keeps it, with its figures."""

import sys

from studies.confidence_study import summarise_studies
from zoo import similarities
from zoo.errors import InputError
from zoo.evaluation.runs import data_of
from zoo.files import RunFolder, write_text


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
