"""The results of a run as a table on the terminal."""

import re

from rich import box
from rich.console import Console
from rich.table import Table

from zoo.report.style import DIRECTIONS

_RECALL = re.compile(r"recall@(\d+)")
_NAMES = {"r_precision": "R-P", "map@r": "mAP@R", "queries": "queries"}


def results_table(metrics, title=None, chance=None):
    """A table with a row for each direction and a column for each metric, in percent.

    Args:
        metrics: what `zoo.metrics.evaluate_retrieval` returned, or a dict of several such by name,
            e.g. by test-time similarity, which are set one below the other.
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


def print_results(metrics, title=None, chance=None, console=None):
    """Prints `results_table` on the terminal."""
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
