"""The papers' ablations on the toy data: one sweep a command, resumed where it was, and its table.

    python -m studies.ablations --sweep pcme_regularisers      # PCME, table D.1
    python -m studies.ablations --sweep dive_sets --seeds 0    # DivE, one seed
    python -m studies.ablations --sweep pcmepp_methods         # PCME++ and its baselines
    python -m studies.ablations --sweep pcmepp_loss --no-run   # only the table of what is there
    python -m studies.ablations --sweep pcme_regularisers --folds val1 val2 val3 \\
        --data-dir CUB_200_2011 --also image-weights=imagenet glove=glove.840B.300d.txt

Every row is a recipe with some flags (`studies/sweeps.py`), run with every seed in a folder of its
own below --out; what is finished is not run again, and what was stopped goes on. The table, mean ±
standard deviation over the seeds, is printed and written as `table.md`, with the columns that the
paper prints first (`studies/columns.py`); where the paper draws curves, they are `figure.png`. With
--folds every row is run with each of these parts of CUB's training classes held out, and the table
is over all of them: cross-validated, as PCME's table D.1 and figure D.2.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from halo_search.files.written import Written
from studies import columns, seed_table
from studies.seed_table import Column
from studies.sweeps import SWEEPS
from zoo import cli, plots
from zoo.cli import setting
from zoo.plots.style import MARKERS, PALETTE, new_figure, styled

SIDES = ("image → text", "text → image")
FOLDS = ("val1", "val2", "val3")  # Xian's, of CUB's 150 training classes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which sweep, and which part of it."""

    sweep: Literal[tuple(SWEEPS)]
    out: Path | None = setting(None, "folder of the runs and table.md; default: runs/SWEEP")
    seeds: tuple[int, ...] = setting((0, 1, 2), "seeds of the runs")
    run: bool = setting(True, "train what is not there yet; without it, only the table")
    rows: tuple[str, ...] = setting((), "rows of the table to run, by name; default: all")
    folds: tuple[str, ...] = setting(
        (), "validation splits of CUB to hold out in turn", source="PCME, table D.1"
    )
    data_dir: Path | None = setting(None, "real data instead of the toy's")
    also: tuple[str, ...] = setting(
        (), "further flags of all rows, without dashes: image-weights=imagenet held-out=val1"
    )
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        known = SWEEPS[self.sweep].rows
        if unknown := [name for name in self.rows if name not in known]:
            raise ValueError(f"--rows: unknown {unknown}; known {list(known)}")
        unknown = set(self.folds) - set(FOLDS)
        if unknown or (self.folds and not self._is_of_cub):
            raise ValueError(
                f"--folds are some of {', '.join(FOLDS)}, of the sweeps on CUB's classes; received "
                f"{' '.join(self.folds)} for {self.sweep}"
            )
        if self.out is None:
            object.__setattr__(self, "out", Path("runs") / self.sweep)

    @property
    def chosen(self):
        """The rows to run."""
        known = SWEEPS[self.sweep].rows
        return {name: known[name] for name in self.rows or known}

    @property
    def _is_of_cub(self):
        """Whether the sweep's recipes hold out such classes."""
        return self.sweep.startswith("pcme_") and self.sweep != "pcme_methods_coco"


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    folds = settings.folds or ("",)
    if settings.run:
        common = [f"--data-dir={settings.data_dir}"] if settings.data_dir else []
        common += ["--smoke"] if settings.smoke else []
        common += [f"--{flag}" for flag in settings.also]
        seed_table.run_rows(settings.chosen, settings, common, folds)
    missing = seed_table.missing(settings.chosen, settings, folds)
    sweep = SWEEPS[settings.sweep]
    tables = [
        seed_table.markdown(settings.chosen, shown, settings, folds)
        for shown in (columns_of(sweep), *sweep.more)
    ]
    seed_table.publish(settings, "\n".join(filter(None, tables)) + missing)
    draw(settings, folds)


def columns_of(sweep):
    """What the paper prints, then what else is known of the runs, each once."""
    smaller = columns.SMALLER
    if sweep.columns == columns.VALIDATION:
        smaller = (*smaller, "first_1k")
    further = [
        *(columns.whole_split(metric, smaller) for metric in ("map@r", "r_precision", "recall@1")),
        columns.log_sigma(),
        columns.whole_rsum(smaller),
        seed_table.bins(),
        Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
        Column("minutes", (lambda metrics: metrics["seconds"] / 60,)),
    ]
    return list({column.title: column for column in (*sweep.columns, *further)}.values())


def draw(settings, folds):
    """The paper's curves of the finished runs."""
    curves = SWEEPS[settings.sweep].curves
    measured = curves and points(curves, settings, folds)
    if measured:
        Written(settings.out).claim("figure.png")
        plots.save(plot(curves, measured), settings.out / "figure.png")


def points(curves, settings, folds=("",)):
    """What the finished runs reached."""
    measured = {}
    for column in map(seed_table.over_folds, curves.columns):
        for line, rows in curves.lines.items():
            numbers, values = [], []
            for number, name in rows:
                of_row = _values(column, seed_table.finished(name, settings, folds))
                if of_row is not None:
                    numbers.append(number)
                    values.append(of_row)
            if numbers:
                most = max(row.shape[1] for row in values)
                padded = [_padded(row, most) for row in values]
                measured.setdefault(column.title, {})[line] = (numbers, np.stack(padded))
    return measured


def _values(column, runs):
    try:
        return np.array([[value(run) for run in runs] for value in column.values]) if runs else None
    except KeyError:
        return None


def _deviation(seeds):
    seeds = seeds[~np.isnan(seeds)]
    return np.std(seeds, ddof=1) if len(seeds) > 1 else 0.0


def _padded(row, count):
    return np.pad(row, ((0, 0), (0, count - row.shape[1])), constant_values=np.nan)


@styled
def plot(curves, measured):
    """One panel per metric and direction, one line per method; bars are deviations of seeds."""
    figure = new_figure(7.6, 3.3 * len(measured))
    grid = figure.subplots(len(measured), len(SIDES), squeeze=False)
    for axes, (title, lines) in zip(grid, measured.items(), strict=True):
        for side, axis in enumerate(axes):
            for place, (name, (numbers, values)) in enumerate(lines.items()):
                of_side = values[:, side]
                axis.errorbar(
                    numbers,
                    np.nanmean(of_side, axis=1),
                    yerr=[_deviation(seeds) for seeds in of_side],
                    color=PALETTE[place],
                    marker=MARKERS[place],
                    capsize=2.5,
                    label=name,
                )
            axis.set_xscale("log", base=2)
            ticks = sorted({number for numbers, _ in lines.values() for number in numbers})
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
            axis.set(
                xlabel=curves.label, title=SIDES[side], ylabel=f"{title.split(' i2t')[0]} in %"
            )
            axis.legend()
    return figure


if __name__ == "__main__":
    cli.run(main)
