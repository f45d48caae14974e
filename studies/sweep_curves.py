"""The curves of a sweep: a paper's metric over the number that its rows vary."""

import numpy as np

from studies import seed_table
from zoo.plots.style import MARKERS, PALETTE, new_figure, styled

SIDES = ("image → text", "text → image")


def points(curves, settings, folds=("",)):
    """What the finished runs reached."""
    found = {}
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
                found.setdefault(column.title, {})[line] = (numbers, np.stack(padded))
    return found


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
def plot(curves, found):
    """One panel per metric and direction, one line per method; bars are deviations of seeds."""
    figure = new_figure(7.6, 3.3 * len(found))
    grid = figure.subplots(len(found), len(SIDES), squeeze=False)
    for axes, (title, lines) in zip(grid, found.items(), strict=True):
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
