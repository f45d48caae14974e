"""Figures of the controlled ambiguity experiment: by the largest area, and sheets of crops."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
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

QUERIES = {
    "crop_a": "crop A",
    "crop_c": "crop C",
    "caption_a": "caption A",
    "caption_c": "caption C",
}
_CROPS = ("A", "B", "C")
_ON_COLOUR = ("white", "black", "black")  # letters on the palette's first three, 5:1 or more
MORE = {"crops": "crop C above crop A", "captions": "caption “A and B” below caption A"}


def crop_figures(*tables):
    """The figures of one run of the experiment, or of several seeds.

    ```python
    row = {"largest_area": 0.1, "triplets": 10}
    row["selection"] = {"crop_a": 0.6, "crop_c": 0.7, "caption_a": 0.7, "caption_c": 0.6}
    figures = crop_figures([row])
    ```

    Args:
        *tables: `crop_triplets` of the metrics of `studies/crop_ambiguity.py`, one a seed: rows
            with `largest_area`, `triplets` and, where there are triplets, `selection`, and of
            Gaussians `mean_uncertainty` and `more_uncertain`. All with the same areas.

    Returns:
        `{name: matplotlib figure}`: `selection_accuracy` (table 4), of Gaussians also
        `mean_uncertainty` (figure 2) and `more_uncertain` (the zoo's own). Bars of one run are
        95 % Wilson intervals, those of several the standard deviation over the seeds.

    Raises:
        ValueError: if there is no table, none has triplets, or their areas differ.

    Reference: Pishdad et al., 2022, section 4.6.
    """
    areas = {tuple(row["largest_area"] for row in table) for table in tables}
    if len(areas) != 1:
        raise ValueError(f"`tables` must have the same areas, of one at least; received {areas}")
    # Thresholds at which every seed has triplets: the data are the same, so all have or none.
    rows = [of_area for of_area in zip(*tables, strict=True) if of_area[0]["triplets"]]
    if not rows:
        raise ValueError("`tables` must have triplets at some area; received none")
    figures = {
        "selection_accuracy": _shares(
            rows, "selection", QUERIES, "accuracy (%)", "Which of A and C belongs to the query?"
        )
    }
    if "mean_uncertainty" in rows[0][0]:
        figures["mean_uncertainty"] = _mean_uncertainty(rows)
        figures["more_uncertain"] = _shares(
            rows,
            "more_uncertain",
            MORE,
            "triplets (%)",
            "Is the more ambiguous one more uncertain?",
        )
    return figures


@styled
def crop_sheet(
    pictures: Sequence,
    boxes: np.ndarray,
    captions: Sequence,
    image_uncertainty: np.ndarray,
    caption_uncertainty: np.ndarray,
) -> Figure:
    """One row a picture: the places of A, B and C, and the uncertainties of A and C.

    Args:
        pictures: `r` arrays `(height, width, 3)`, 0 … 255.
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
        show_image(axis, pictures[row])
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
                    clip_on=False,
                )
            )
            # Each in a corner of its own: crops often share one, and often end with the picture.
            right, bottom = number == 1, number == 2
            axis.annotate(
                _CROPS[number],
                (x - 0.5 + right * width, y - 0.5 + bottom * height),
                annotation_clip=False,
                color=_ON_COLOUR[number],
                fontsize=7,
                ha="right" if right else "left",
                va="bottom" if bottom else "top",
                bbox={"facecolor": PALETTE[number], "edgecolor": "none", "pad": 0.8},
            )
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
def _shares(rows, name, labels, unit, title):
    figure = new_figure(5.6, 4.4)
    axis = figure.subplots()
    place, counts = np.arange(len(rows)), np.array([row[0]["triplets"] for row in rows])
    for number, (key, label) in enumerate(labels.items()):
        values = np.array([[one[name][key] for one in row] for row in rows])
        x = place + 0.06 * (number - (len(labels) - 1) / 2)
        style = {"color": PALETTE[number], "marker": MARKERS[number], "label": label}
        if values.shape[1] == 1:
            draw_shares(axis, x, np.rint(values[:, 0] * counts), counts, **style)
        else:
            bars = 100 * values.std(1, ddof=1)
            axis.errorbar(x, 100 * values.mean(1), bars, capsize=2, **style)
    axis.axhline(50, color=GREY, linewidth=1, linestyle=":", label="chance")
    _areas(axis, rows)
    axis.set_ylabel(unit)
    axis.set_ylim(0, 103)
    axis.set_title(title + _seeds(rows))
    legend_below(figure, axis)
    return figure


@styled
def _mean_uncertainty(rows):
    figure = new_figure(8.4, 3.8)
    axes = figure.subplots(1, 2)
    for axis, side in zip(axes, ("crops", "captions"), strict=True):
        for number, which in enumerate("ac"):
            values = np.array([[one["mean_uncertainty"][side][which] for one in r] for r in rows])
            bars = values.std(1, ddof=1) if values.shape[1] > 1 else None
            style = {"color": PALETTE[number], "marker": MARKERS[number], "label": which.upper()}
            axis.errorbar(np.arange(len(rows)), values.mean(1), bars, capsize=2, **style)
        _areas(axis, rows)
        axis.set_title(side + _seeds(rows))
        axis.legend()
    axes[0].set_ylabel("mean log det Σ (nats)")
    return figure


def _areas(axis, rows):
    labels = [f"≤ {100 * row[0]['largest_area']:g} %\nn = {row[0]['triplets']:,}" for row in rows]
    axis.set_xticks(np.arange(len(rows)), labels)
    axis.set_xlabel("largest area of a region, of the picture's")


def _seeds(rows):
    return f"  ({len(rows[0])} seeds)" if len(rows[0]) > 1 else ""
