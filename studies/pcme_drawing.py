"""How PCME's figures 5, D.1, E.1 and E.3 are drawn."""

import numpy as np

from zoo.plots.ellipses import draw_gaussian, name_axes
from zoo.plots.style import MARKERS, PALETTE, new_figure, styled

HALF, MOST = 0.5, 0.99  # confidence of figure 5's ellipses, and of the generic caption's
RED = "#C00000"
SIDES = ("image → text", "text → image")


@styled
def two_panels(images, image_labels, captions, caption_labels, names, plane, generic):
    """Figure 5: images left, captions right, coloured by class, with the generic caption in red."""
    figure = new_figure(10.4, 4.6)
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    classes = list(dict.fromkeys([*image_labels.tolist(), *caption_labels.tolist()]))
    of_generic = [part[0] for part in plane.project(generic["mean"], generic["log_variance"])]
    panels = (("images", images, image_labels), ("captions", captions, caption_labels))
    for axis, (title, embedding, labels) in zip(axes, panels, strict=True):
        parts = zip(*plane.project(embedding["mean"], embedding["log_variance"]), strict=True)
        for (mean, covariance), label in zip(parts, labels.tolist(), strict=True):
            place = classes.index(label)
            color, marker = PALETTE[place % len(PALETTE)], MARKERS[place // len(PALETTE)]
            draw_gaussian(axis, mean, covariance, color, marker, filled=True, confidence=HALF)
        draw_gaussian(axis, *of_generic, RED, "*", confidence=MOST, width=2.0)
        axis.set_title(f"{title}: {100 * HALF:g} % ellipses")
        name_axes(axis, plane)
    for place, label in enumerate(classes):
        color, marker = PALETTE[place % len(PALETTE)], MARKERS[place // len(PALETTE)]
        axes[1].plot([], [], marker, color=color, label=str(names.get(label, label)))
    axes[1].plot([], [], "*-", color=RED, label=f"“this bird has <unk> …”, {100 * MOST:g} %")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


@styled
def sorted_variances(variances):
    """Figure D.1: mean variance of each dimension, the largest first; a flat line is isotropic."""
    figure = new_figure(8.0, 3.6)
    axes = figure.subplots(1, 2)
    for axis, side in zip(axes, ("images", "captions"), strict=True):
        for place, (name, sides) in enumerate(variances.items()):
            values = np.sort(sides[side])[::-1]
            axis.plot(np.arange(1, len(values) + 1), values, color=PALETTE[place], label=name)
        axis.set(xlabel="dimension, sorted", ylabel="mean variance", title=side, yscale="log")
        axis.legend()
    return figure


@styled
def over_samples(drawn, free):
    """Figure E.1: R-Precision over J, and what needs no samples as flat lines."""
    figure = new_figure(9.6, 3.8)
    axes = figure.subplots(1, 2)
    for side, (axis, title) in enumerate(zip(axes, SIDES, strict=True)):
        counts = sorted(drawn)
        values = [drawn[count][side] for count in counts]
        axis.plot(counts, values, marker="o", color=PALETTE[0], label="match probability")
        for place, (name, both) in enumerate(free.items(), 1):
            line = (0, (4, 1 + place))
            axis.axhline(both[side], color=PALETTE[place], linestyle=line, label=name)
        axis.set(xlabel="samples J", ylabel="R-Precision in %", title=title)
        axis.set_xticks(counts)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


@styled
def by_zeta(precisions):
    """Figure E.3: PMRP over ζ, a line a method."""
    figure = new_figure(8.0, 3.6)
    axes = figure.subplots(1, 2)
    for axis, side, title in zip(axes, ("i2t", "t2i"), SIDES, strict=True):
        for place, (name, sides) in enumerate(precisions.items()):
            look = {"color": PALETTE[place % len(PALETTE)], "marker": MARKERS[place % len(MARKERS)]}
            axis.plot((0, 1, 2), sides[side], label=name, **look)
        axis.set(xlabel="ζ, labels that may differ", ylabel="PMRP in %", title=title)
        axis.set_xticks((0, 1, 2))
        axis.legend()
    return figure
