"""Figures of DAA: semantic pairs, ASP among the nearest, ASP over epochs."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from zoo.plots.style import DIRECTIONS, GREY, MARKERS, PALETTE, new_figure, styled


@styled
def positives_plot(thresholds, counts, annotated):
    """The number of pairs above each semantic score, beside that of the annotated pairs."""
    if len(thresholds) != len(counts):
        raise ValueError(
            f"`counts` must be as many as `thresholds`, {len(thresholds)}; received {len(counts)}"
        )
    figure = new_figure(5.2, 3.6)
    axis = figure.subplots()
    shown = np.maximum(counts, 0.5)  # none is drawn at the foot of the logarithmic axis
    axis.plot(thresholds, shown, marker=MARKERS[0], color=PALETTE[0], label="pairs above")
    axis.axhline(annotated, color=GREY, linestyle="--", label=f"annotated, {annotated:,}")
    axis.set(xlabel="CIDEr with the image's captions", ylabel="pairs", yscale="log")
    axis.legend()
    return figure


@styled
def precision_at_plot(depths, precisions):
    """ASP among the N semantically nearest items, one panel a direction, one curve a system."""
    figure = new_figure(9.0, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (side, name) in zip(axes, DIRECTIONS.items(), strict=True):
        places = depths[side] if isinstance(depths, dict) else depths
        for number, (system, found) in enumerate(precisions.items()):
            color, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
            values = 100 * np.asarray(found[side])
            axis.plot(places, values, color=color, marker=marker, label=system)
        axis.set(title=name, xlabel="N semantically nearest items", xscale="log")
    axes[0].set_ylabel("ASP (%)")
    axes[1].legend()
    return figure


@styled
def asp_curves(histories: Mapping) -> Figure:
    """ASP over the epochs, one panel a direction, one curve a system."""
    figure = new_figure(9.0, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (side, name) in zip(axes, DIRECTIONS.items(), strict=True):
        for place, (system, history) in enumerate(histories.items()):
            values = np.asarray(history.get(f"val_{side}_asp", []), float)
            epochs = np.flatnonzero(np.isfinite(values))
            if not len(epochs):
                continue
            color, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
            axis.plot(epochs + 1, values[epochs], color=color, marker=marker, label=system)
        axis.set(title=name, xlabel="epoch")
    axes[0].set_ylabel("ASP (%)")
    axes[1].legend()
    return figure
