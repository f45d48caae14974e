"""Figures of the controlled ambiguity experiment: by the largest area, and sheets of crops."""

import textwrap

import numpy as np
from matplotlib.patches import Rectangle

from zoo.plots.style import (
    GREY,
    MARKERS,
    PALETTE,
    draw_shares,
    legend_below,
    mark,
    new_figure,
    show_image,
    styled,
    with_minus,
)

QUERIES = {"crop_a": "crop A", "crop_c": "crop C", "caption_a": "caption A"}
QUERIES |= {"caption_c": "caption C"}
_CROPS = ("A", "B", "C")
_ON_COLOUR = ("white", "black", "black")  # letters on the palette's first three, 5:1 or more


def crop_figures(table):
    """The figures of a run of the experiment."""
    rows = [row for row in table if row["triplets"]]
    if not rows:
        raise ValueError("`table` must have triplets at some area; received none")
    figures = {"selection_accuracy": _selection(rows)}
    if "mean_uncertainty" in rows[0]:
        figures["mean_uncertainty"] = _mean_uncertainty(rows)
    return figures


@styled
def crop_sheet(pictures, boxes, captions, image_uncertainty, caption_uncertainty):
    """One row a picture: the places of A, B and C, and the uncertainties of A and C."""
    rows = len(pictures)
    figure = new_figure(9.2, 1.75 * rows)
    grid = figure.add_gridspec(rows, 2, width_ratios=[1.6, 7.6])
    for row in range(rows):
        axis = figure.add_subplot(grid[row, 0])
        show_image(axis, pictures[row])
        for number, (x, y, width, height) in enumerate(np.asarray(boxes[row])):
            colour, right, bottom = PALETTE[number], number == 1, number == 2
            look = {"fill": False, "edgecolor": colour, "linewidth": 1.6, "clip_on": False}
            look["linestyle"] = "--" if number == 2 else "-"
            axis.add_patch(Rectangle((x - 0.5, y - 0.5), width, height, **look))
            # Each in a corner of its own: crops often share one, and often end with the picture.
            look = {"ha": "right" if right else "left", "va": "bottom" if bottom else "top"}
            look |= {"color": _ON_COLOUR[number], "fontsize": 7, "annotation_clip": False}
            look["bbox"] = {"facecolor": colour, "edgecolor": "none", "pad": 0.8}
            corner = x - 0.5 + right * width, y - 0.5 + bottom * height
            axis.annotate(_CROPS[number], corner, **look)
        axis = figure.add_subplot(grid[row, 1])
        axis.set_axis_off()
        crops, texts = np.asarray(image_uncertainty[row]), np.asarray(caption_uncertainty[row])
        lines = [
            f"crop  A  u = {with_minus(f'{crops[0]:.2f}')}    "
            f"C  u = {with_minus(f'{crops[1]:.2f}')}    {mark(crops[1] > crops[0])}",
            f"caption  A  u = {with_minus(f'{texts[0]:.2f}')}    "
            f"C  u = {with_minus(f'{texts[1]:.2f}')}    {mark(texts[1] < texts[0])}",
            f"A: {textwrap.shorten(captions[row][0], 115, placeholder=' …')}",
            *textwrap.wrap(f"C: {captions[row][1]}", 115)[:3],
        ]
        axis.text(0, 0.5, "\n".join(lines), va="center", fontsize=8.5, linespacing=1.5)
    return figure


@styled
def _selection(rows):
    figure = new_figure(5.6, 4.4)
    axis = figure.subplots()
    place, counts = np.arange(len(rows)), np.array([row["triplets"] for row in rows])
    for number, (key, label) in enumerate(QUERIES.items()):
        values = np.array([row["selection"][key] for row in rows])
        x = place + 0.06 * (number - (len(QUERIES) - 1) / 2)
        style = {"color": PALETTE[number], "marker": MARKERS[number], "label": label}
        draw_shares(axis, x, np.rint(values * counts), counts, **style)
    axis.axhline(50, color=GREY, linewidth=1, linestyle=":", label="chance")
    _areas(axis, rows)
    axis.set_ylabel("accuracy (%)")
    axis.set_ylim(0, 103)
    axis.set_title("Which of A and C belongs to the query?")
    legend_below(figure, axis)
    return figure


@styled
def _mean_uncertainty(rows):
    figure = new_figure(8.4, 3.8)
    axes = figure.subplots(1, 2)
    for axis, side in zip(axes, ("crops", "captions"), strict=True):
        for number, which in enumerate("ac"):
            values = [row["mean_uncertainty"][side][which] for row in rows]
            style = {"color": PALETTE[number], "marker": MARKERS[number], "label": which.upper()}
            axis.errorbar(np.arange(len(rows)), values, **style)
        _areas(axis, rows)
        axis.set_title(side)
        axis.legend()
    axes[0].set_ylabel("mean log det Σ (nats)")
    return figure


def _areas(axis, rows):
    labels = [f"≤ {100 * row['largest_area']:g} %\nn = {row['triplets']:,}" for row in rows]
    axis.set_xticks(np.arange(len(rows)), labels)
    axis.set_xlabel("largest area of a region, of the picture's")
