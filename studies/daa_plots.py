"""Figures of DAA: semantic pairs, ASP among the nearest, ASP over epochs."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from zoo.plots.style import DIRECTIONS, GREY, MARKERS, PALETTE, new_figure, styled


@styled
def positives_plot(thresholds, counts, annotated):
    """The number of pairs above each semantic score, beside that of the annotated pairs.

    ```python
    figure = positives_plot([0.1, 0.3], [9000, 400], annotated=100)
    ```

    Args:
        thresholds: `(n,)` scores.
        counts: `(n,)`, of `studies.daa_metrics.pairs_above`.
        annotated: the number of annotated pairs.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if the lengths differ.

    Reference: DAA (Li et al., NeurIPS 2022), figure 1 (b).
    """
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
    """ASP among the N semantically nearest items, one panel a direction, one curve a system.

    ```python
    figure = precision_at_plot([5, 50], {"base": {"i2t": [0.7, 0.6], "t2i": [0.7, 0.5]}})
    ```

    Args:
        depths: `{"i2t": N, "t2i": N}`, or the same N of both.
        precisions: `{system: result of studies.daa_metrics.semantic_precision_at}`.

    Returns:
        A matplotlib figure.

    Reference: DAA (Li et al., NeurIPS 2022), figure 3.
    """
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
    """ASP over the epochs, one panel a direction, one curve a system.

    ```python
    figure = asp_curves({"base": {"val_i2t_asp": [50, 55], "val_t2i_asp": [51, 56]}})
    ```

    Args:
        histories: `{system: history}`, as `zoo.training.read_history` gives them. Epochs without
            the value are left out.

    Returns:
        A matplotlib figure.

    Reference: DAA (Li et al., NeurIPS 2022), figure 4.
    """
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
