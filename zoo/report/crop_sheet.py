"""A sheet of crops A and C with their captions and uncertainties."""

import textwrap

import numpy as np
from matplotlib.patches import Rectangle

from zoo.report.style import PALETTE, new_figure, styled, with_minus

_NAMES = ("A", "B", "C")


@styled
def crop_sheet(pictures, boxes, captions, image_uncertainty, caption_uncertainty):
    """One row a picture: where A, B and C are, and how uncertain crops and captions A and C are.

    Args:
        pictures: `r` of them, `(height, width, 3)`, 0 … 255.
        boxes: `(r, 3, 4)`, (x, y, width, height) of A, B and C in pixels.
        captions: `r` pairs of captions, A and "A and B".
        image_uncertainty, caption_uncertainty: `(r, 2)`, of A and C.

    Returns:
        A matplotlib figure.
    """
    rows = len(pictures)
    figure = new_figure(9.2, 1.75 * rows)
    grid = figure.add_gridspec(rows, 2, width_ratios=[1.6, 7.6])
    for row in range(rows):
        axis = figure.add_subplot(grid[row, 0])
        axis.imshow(np.asarray(pictures[row], np.uint8))
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
        for number, (x, y, width, height) in enumerate(np.asarray(boxes[row])):
            axis.add_patch(
                Rectangle(
                    (x - 0.5, y - 0.5),
                    width,
                    height,
                    fill=False,
                    edgecolor=PALETTE[number],
                    linewidth=1.6,
                    linestyle="--" if number == 2 else "-",
                )
            )
            axis.annotate(
                _NAMES[number],
                (x, y),
                color="white",
                fontsize=7,
                va="top",
                bbox={"facecolor": PALETTE[number], "edgecolor": "none", "pad": 0.8},
            )
        axis = figure.add_subplot(grid[row, 1])
        axis.set_axis_off()
        crops, texts = image_uncertainty[row], caption_uncertainty[row]
        lines = [
            f"crop  A  u = {_number(crops[0])}    C  u = {_number(crops[1])}"
            f"    {_mark(crops[1] > crops[0])}",
            f"caption  A  u = {_number(texts[0])}    C  u = {_number(texts[1])}"
            f"    {_mark(texts[1] < texts[0])}",
            f"A: {textwrap.shorten(captions[row][0], 115, placeholder=' …')}",
            *textwrap.wrap(f"C: {captions[row][1]}", 115)[:3],
        ]
        axis.text(0, 0.5, "\n".join(lines), va="center", fontsize=8.5, linespacing=1.5)
    return figure


def _number(value):
    return with_minus(f"{float(value):.2f}")


def _mark(right):
    return "✓" if right else "✗"
