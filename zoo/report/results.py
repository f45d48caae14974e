"""The results of one evaluation: a table on the terminal, and the figures of a run's folder."""

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from zoo import similarities
from zoo.evaluation.retrieval import EncodedSplit
from zoo.models import DualEncoder
from zoo.report import retrieval_sheets, style, uncertainty_plots
from zoo.report.ellipses import confidence_ellipses, principal_plane
from zoo.report.gaussian_shape import items_of
from zoo.report.style import DIRECTIONS

_RECALL = re.compile(r"recall@(\d+)")
_NAMES = {"r_precision": "R-P", "map@r": "mAP@R", "queries": "queries"}


def results_table(metrics, title=None, chance=None):
    """A table with a row for each direction and a column for each metric, in percent.

    Args:
        metrics: the result of `zoo.metrics.evaluate_retrieval`, or a dict of several by name, for
            instance of the test-time similarity, one below the other.
        title: line above the table.
        chance: the same metrics of a random ranking, for a row to compare with.

    Returns:
        A `rich.table.Table`; `print_results` prints it.

    Raises:
        ValueError: if there is no `i2t_` or `t2i_` metric.
    """
    blocks = metrics if _is_several(metrics) else {"": metrics}
    if chance is not None:
        blocks = {**blocks, "chance": chance}
    columns = _columns(blocks.values())
    if not columns:
        raise ValueError(
            f"`metrics` must have keys such as 'i2t_recall@1'; received {sorted(metrics)}"
        )
    # Narrow enough for several blocks on a terminal of 80 columns.
    table = Table(
        title=title,
        title_justify="left",
        caption=_footer(blocks),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.caption_justify = "left"
    several = len(blocks) > 1
    if several:
        table.add_column("", style="bold", no_wrap=True)
    table.add_column("direction", no_wrap=True)
    for column in columns:
        table.add_column(_heading(column), justify="right")
    for name, block in blocks.items():
        rows = [d for d in DIRECTIONS if any(f"{d}_{column}" in block for column in columns)]
        for position, direction in enumerate(rows):
            label = [name if position == 0 else ""] if several else []
            cells = [_cell(block.get(f"{direction}_{column}"), column) for column in columns]
            table.add_row(
                *label,
                DIRECTIONS[direction],
                *cells,
                style="dim" if name == "chance" else None,
                end_section=direction == rows[-1],
            )
    return table


def print_results(
    metrics: dict[str, Any],
    title: str | None = None,
    chance: dict[str, float] | None = None,
    console: Console | None = None,
) -> None:
    """Prints `results_table` on the terminal.

    ```python
    print_results(zoo.metrics.evaluate_retrieval(similarity, relevance), title="Toy Birds, in %")
    ```
    """
    (console or Console()).print(results_table(metrics, title, chance))


def _is_several(metrics):
    return bool(metrics) and all(isinstance(value, dict) for value in metrics.values())


def _columns(blocks):
    found = {key[4:] for block in blocks for key in block if key[:4] in ("i2t_", "t2i_")}
    recalls = sorted((c for c in found if _RECALL.fullmatch(c)), key=_k)
    return recalls + [name for name in _NAMES if name in found]


def _k(column):
    return int(_RECALL.fullmatch(column)[1])


def _heading(column):
    return _NAMES.get(column) or f"R@{_k(column)}"


def _cell(value, column):
    if value is None:
        return "–"
    return f"{value:,}" if column == "queries" else f"{value:.1f}"


def _footer(blocks):
    sums = [
        f"{name} {block['rsum']:.1f}".strip() for name, block in blocks.items() if "rsum" in block
    ]
    left_out = max(
        block.get(f"{direction}_queries_without_positive", 0)
        for block in blocks.values()
        for direction in DIRECTIONS
    )
    lines = [f"RSUM: {', '.join(sums)}"] if sums else []
    if left_out:
        lines.append(f"left out: {left_out:,} queries without a positive")
    return "\n".join(lines) or None


def draw(
    folder: str | os.PathLike,
    results: dict[str, Any],
    split: EncodedSplit,
    model: DualEncoder,
    picture: Callable | None,
    true_matches: np.ndarray | None = None,
) -> None:
    """Writes the figures of an evaluated split as PNG: retrieval sheets, and of its uncertainties.

    Args:
        folder: a `Path`.
        results: of `zoo.evaluation.evaluate`.
        split: the `EncodedSplit` that was evaluated.
        model: the `DualEncoder`.
        picture: function from an image's index to its pixels `(height, width, 3)`, 0 … 255; None,
            for features, draws no sheets.
        true_matches: `(M,)`, the number of images that each caption is true of, or None.
    """
    figures = {}
    if picture is not None:
        similarity = _ranking(next(iter(results["retrieval"])), model)
        figures |= _sheets(split, split.pairs(similarity).kept(), picture)
    if "uncertainty" in results:
        quality = results["uncertainty"]
        bins = {side: quality[side]["recall_by_uncertainty"] for side in quality}
        curves = {side: quality[side]["risk_coverage"] for side in quality}
        if len(quality) == 2:  # not where captions alone have an uncertainty
            draw_bins = uncertainty_plots.recall_by_uncertainty_plot
            figures["recall_by_uncertainty"] = draw_bins(**bins)
            figures["risk_coverage"] = uncertainty_plots.risk_coverage_plot(**curves)
        if "log_variance" in split.images:
            labels = np.unique(split.records.image_labels)[:5]
            plane = principal_plane(split.images["mean"])
            figures["confidence_ellipses"] = confidence_ellipses(
                *items_of(split, labels, each=4), plane=plane
            )
        if true_matches is not None:
            figures["ambiguity"] = uncertainty_plots.uncertainty_against_matches(
                split.caption_uncertainty, true_matches, split.measure
            )
    for name, figure in figures.items():
        style.save(figure, folder / f"{name}.png")


def _ranking(name, model):
    """The similarity with this name in the results."""
    own = model.similarity
    name = similarities.current_name(name) or name  # of a run that is older than its name
    return own if similarities.name_of(own) == name else similarities.get(name, model)


def _sheets(split, pairs, picture, rows=6):
    """Queries from the most certain to the most uncertain, with their best answers."""
    records = split.records
    captions = _spread(split.caption_uncertainty, records.num_captions, rows)
    images = _spread(split.image_uncertainty, records.num_images, rows)
    return {
        "text_to_image": retrieval_sheets.sheet_of_captions(split, pairs, picture, captions),
        "image_to_text": retrieval_sheets.sheet_of_images(split, pairs, picture, images),
    }


def _spread(values, count, rows):
    order = np.arange(count) if values is None else np.argsort(values, kind="stable")
    return order[np.linspace(0, count - 1, rows).round().astype(int)]
