"""Figures of the semantic similarity of captions and images: DAA's figures 1 (b) and 3."""

import numpy as np

from zoo.report.style import DIRECTIONS, GREY, MARKERS, PALETTE, new_figure, styled


@styled
def positives_plot(thresholds, counts, annotated):
    """The number of pairs above each semantic score, beside that of the annotated pairs.

    ```python
    figure = positives_plot([0.1, 0.3], [9000, 400], annotated=100)
    ```

    Args:
        thresholds: `(n,)` scores.
        counts: `(n,)`, of `zoo.metrics.pairs_above`.
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
        precisions: `{system: result of zoo.metrics.semantic_precision_at}`.

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
