"""A table over seeds: runs of recipes, and the mean and standard deviation of what they reached."""

from typing import NamedTuple

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files import write_text
from halo_search.files.written import Written
from studies.statistics import mean_and_deviation
from zoo.models.run_folder import RunFolder

DIRECTIONS = ("i2t", "t2i")


class Row(NamedTuple):
    """One row of a table: a recipe's `main` with the flags that make it this row."""

    main: object  # of a module of `recipes/` or `studies/`
    flags: tuple[str, ...] = ()  # that make it this row


class Column(NamedTuple):
    """One column: its title, and functions of a run's results that give its numbers."""

    title: str
    values: tuple
    form: str = ".1f"


class Sweep(NamedTuple):
    """One table, or one figure, of a paper."""

    rows: dict  # `{name: Row}`
    columns: tuple = ()  # `Column`s that the paper prints; those of a run without them are left out
    curves: "Curves | None" = None  # what the paper draws, or None: a `Curves`
    more: tuple = ()  # `Column`s of further tables of the same rows


class Curves(NamedTuple):
    """Metrics over a number that the rows vary."""

    label: str  # of that number
    lines: dict  # `{name of a line: [(number, name of a row), …]}`
    columns: tuple  # `Column`s, one panel each


def rows_of(main, variants):
    """`{name: Row}` of a recipe's variants, `{name: flags}`."""
    return {name: Row(main, tuple(flags)) for name, flags in variants.items()}


def with_and_without(flags):
    """All combinations of some parts: `{"VIB, PP": [flags that switch off the others]}`."""
    variants = {}
    for chosen in range(2 ** len(flags) - 1, -1, -1):
        chosen_names = [name for place, name in enumerate(flags) if chosen >> place & 1]
        off = [flag for name, flag in flags.items() if name not in chosen_names]
        variants[", ".join(chosen_names) or "none of them"] = off
    return variants


def publish(settings, *parts):
    """Prints a table and writes it as `table.md`."""
    text = "\n".join(parts)
    Written(settings.out).claim("table.md")
    write_text(settings.out / "table.md", text)
    print(text)


def folder(out, name, seed):
    """The run folder of a row and a seed: `PCME++` is `pcmepp`, `VSE∞` is `vse_infinity`."""
    name = name.lower().replace("++", "pp").replace("∞", " infinity")
    words = "".join(letter if letter.isalnum() else " " for letter in name).split()
    return out / f"{'_'.join(words)}-seed-{seed}"


def run_rows(rows, settings, common=(), folds=("",)):
    """Runs every row with every seed, of settings with `out` and `seeds`; finished runs are not
    repeated."""
    for seed in settings.seeds:
        for fold in folds:
            for name, row in rows.items():
                held_out = [f"--held-out={fold}"] if fold else []
                out = folder(settings.out / fold, name, seed)
                row.main([*row.flags, *common, *held_out, f"--seed={seed}", f"--out={out}"])
                keras.backend.clear_session()  # graphs of finished runs are of no more use


def markdown(rows, columns, settings, folds=("",)):
    """The table of the finished runs in Markdown, means ± standard deviations over the seeds; "" if
    they have no number of it."""
    cells = {}
    for name in rows:
        if runs := finished(name, settings, folds):
            numbers = [cell(over_folds(column), runs) for column in columns]
            cells[name] = [*numbers, str(len(runs))]
    if not any(any(numbers) for *numbers, _ in cells.values()):
        return ""
    return of_cells([*(column.title for column in columns), "seeds"], cells)


def of_cells(titles, cells):
    """Rows `{name: texts}` in Markdown, without the columns that are empty in all of them."""
    columns = [at for at in range(len(titles)) if any(row[at] for row in cells.values())]
    lines = [f"| | {' | '.join(titles[at] for at in columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | {' | '.join(row[at] for at in columns)} |" for name, row in cells.items()
    ]
    return "\n".join(lines) + "\n"


def finished(name, settings, folds=("",)):
    """What the finished runs of a row reached, `[metrics, …]` over the folds, a list of seeds."""
    runs = [
        [RunFolder(folder(settings.out / fold, name, seed)) for fold in folds]
        for seed in settings.seeds
    ]
    return [[run.metrics for run in ran] for ran in runs if all(run.finished for run in ran)]


def missing(rows, settings, folds=("",)):
    """The runs that a table lacks, as a line below it; "" if it has all. Raises InputError if it
    has none."""
    lacking = {}
    for name in rows:
        for seed in settings.seeds:
            runs = [RunFolder(folder(settings.out / fold, name, seed)) for fold in folds]
            if not all(run.finished for run in runs):
                lacking.setdefault(name, []).append(str(seed))
    listed = "; ".join(f"{name} (seed {', '.join(seeds)})" for name, seeds in lacking.items())
    if lacking.keys() == set(rows) and all(len(s) == len(settings.seeds) for s in lacking.values()):
        raise InputError(
            f"--out {settings.out}: expected finished runs; missing: {listed}. Train them without "
            "--no-run"
        )
    return f"\nMissing: {listed}. Train them without `--no-run`.\n" if listed else ""


def over_folds(column):
    """A column of the mean over several runs, `[metrics, …]` in place of metrics."""

    def mean_of(value):
        return lambda folds_metrics: np.mean(
            np.array([value(metrics) for metrics in folds_metrics], float)
        )

    return column._replace(values=tuple(mean_of(value) for value in column.values))


def cell(column, runs):
    """The numbers of a column over the results of several seeds."""
    try:
        numbers = [[value(metrics) for metrics in runs] for value in column.values]
    except KeyError:
        return ""
    return " / ".join(mean_and_deviation(values, column.form) for values in numbers)


def bins(title="bins i2t / t2i"):
    """The column of Spearman's ρ between the bin of uncertainty and its recall."""

    def value(direction):
        return lambda metrics: metrics["uncertainty"][direction]["spearman_of_bins"]

    return Column(title, tuple(value(direction) for direction in DIRECTIONS), "+.2f")
