"""The results of one evaluation on the terminal: tables, and a sentence each."""

import re
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from zoo.evaluation import confidence_text

ARROWS = {"i2t": "image → text", "t2i": "text → image"}
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
        rows = [d for d in ARROWS if any(f"{d}_{column}" in block for column in columns)]
        for position, direction in enumerate(rows):
            label = [name if position == 0 else ""] if several else []
            cells = [_cell(block.get(f"{direction}_{column}"), column) for column in columns]
            table.add_row(
                *label,
                ARROWS[direction],
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
        for direction in ARROWS
    )
    lines = [f"RSUM: {', '.join(sums)}"] if sums else []
    if left_out:
        lines.append(f"left out: {left_out:,} queries without a positive")
    return "\n".join(lines) or None


def show_results(results: dict[str, Any]) -> None:
    """Prints the results of a run.

    Args:
        results: as metrics.json has them.
    """
    rows = results["retrieval"]
    if "oracle" in results:
        rows = {**rows, "oracle": results["oracle"]}
    print_results(rows, f"{results['split']}, in %", results["chance"])
    if "best_epoch" in results:
        best = results["best_epoch"]
        print(f"weights of {best['phase']}, epoch {best['epoch']}: validation {best['value']:.1f}")
    for side, quality in results.get("uncertainty", {}).items():
        print(
            f"{side}: Spearman of uncertainty bin and R@1 {_signed(quality['spearman_of_bins'])}; "
            f"area under risk–coverage {100 * quality['risk_coverage']['aurc']:.1f} "
            f"(at random {100 * quality['risk_coverage']['random_aurc']:.1f})"
        )
    for side, found in results.get("confidence", {}).items():
        print(confidence_text.sentence(side, found))
    rankings = {"": results} | {
        f" by {name}": found for name, found in results.get("by_similarity", {}).items()
    }
    for by, found in rankings.items():
        if "asp" in found:
            both = " / ".join(f"{found['asp'][side]:.1f}" for side in ("i2t", "t2i"))
            print(f"ASP{by} i2t / t2i {both} %, of a random ranking about 50 %")
        if "coco" in found:
            names = ("coco_1k", "coco_5k", "cxc", "eccv")
            truths = {name: _of_truth(found["coco"], name) for name in names}
            print_results(truths, f"by COCO's truths{by}, in %; R-P by CxC's is RPC2")
    if "ambiguity_spearman" in results:
        rho = _signed(results["ambiguity_spearman"])
        print(f"Spearman of caption uncertainty and true number of matches {rho}")


def _signed(rho):
    """Of values that are all equal there is no ρ; JSON keeps it as null."""
    return "undefined" if rho is None or np.isnan(rho) else f"{rho:+.2f}"


def _of_truth(results, name):
    prefix = f"{name}_"
    return {
        key.removeprefix(prefix): value for key, value in results.items() if key.startswith(prefix)
    }
