"""The controlled ambiguity experiment: how often the more ambiguous one is the more uncertain."""

import numpy as np

from zoo.report.style import GREY, MARKERS, PALETTE, new_figure, styled
from zoo.report.uncertainty_bins import wilson


@styled
def selection_accuracy_plot(thresholds, images, captions, counts):
    """Binary selection accuracy over the largest area that a region may have.

    Bars are 95 % Wilson intervals.

    Args:
        thresholds: `(n,)`, shares of the picture's area.
        images: `(n,)`, shares of the triplets whose crop C is more uncertain than A.
        captions: `(n,)`, shares of the triplets whose caption C is less uncertain than A.
        counts: `(n,)`, how many triplets there are.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if the lengths differ.

    Reference: Pishdad et al., 2022, table 4.
    """
    thresholds, counts = np.asarray(thresholds, float), np.asarray(counts)
    sides = {
        "crops: C more uncertain than A": np.asarray(images, float),
        "captions: “A and B” less uncertain than A": np.asarray(captions, float),
    }
    lengths = {len(thresholds), len(counts), *(len(values) for values in sides.values())}
    if len(lengths) > 1:
        raise ValueError(f"all arguments must have one length; received {sorted(lengths)}")
    figure = new_figure(5.6, 3.8)
    axis = figure.subplots()
    filled = counts > 0
    place = np.arange(len(thresholds))
    for number, (label, values) in enumerate(sides.items()):
        share, count = values[filled], counts[filled]
        low, high = wilson(share, count)
        axis.errorbar(
            place[filled] + (-0.05, 0.05)[number],
            100 * share,
            yerr=100 * np.maximum([share - low, high - share], 0.0),
            color=PALETTE[number],
            marker=MARKERS[number],
            capsize=2.5,
            elinewidth=1,
            label=label,
        )
    axis.axhline(50, color=GREY, linewidth=1, linestyle=":", label="chance")
    axis.set_xticks(
        place,
        [f"≤ {100 * t:g} %\nn = {n:,}" for t, n in zip(thresholds, counts, strict=True)],
    )
    axis.set_xlabel("largest area of a region, of the picture's")
    axis.set_ylabel("selection accuracy (%)")
    axis.set_ylim(0, 103)
    axis.set_title("Is the more ambiguous one more uncertain?")
    axis.legend(loc="best")
    return figure
