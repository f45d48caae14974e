"""The results of one evaluation in words: tables, and a sentence each."""

import re
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from zoo import metrics

ARROWS = {"i2t": "image → text", "t2i": "text → image"}
_RECALL = re.compile(r"recall@(\d+)")
_NAMES = {"r_precision": "R-P", "map@r": "mAP@R", "queries": "queries"}


def print_results(
    metrics: dict[str, Any],
    title: str | None = None,
    chance: dict[str, float] | None = None,
    console: Console | None = None,
) -> None:
    """Prints a table with a row for each direction and a column for each metric, in percent.

    ```python
    print_results(zoo.metrics.evaluate_retrieval(similarity, relevance), title="Toy Birds, in %")
    ```
    """
    several = bool(metrics) and all(isinstance(value, dict) for value in metrics.values())
    blocks = metrics if several else {"": metrics}
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
        table.add_column(_NAMES.get(column) or f"R@{_k(column)}", justify="right")
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
    (console or Console()).print(table)


def _columns(blocks):
    """The names of the columns: recalls by K, then the other metrics."""
    names = {key[4:] for block in blocks for key in block if key[:4] in ("i2t_", "t2i_")}
    recalls = sorted((c for c in names if _RECALL.fullmatch(c)), key=_k)
    return recalls + [name for name in _NAMES if name in names]


def _k(column):
    """The K of a column such as `i2t_recall@5`."""
    return int(_RECALL.fullmatch(column)[1])


def _cell(value, column):
    """A value as text; "–" where it is unknown."""
    if value is None:
        return "–"
    return f"{value:,}" if column == "queries" else f"{value:.1f}"


def _footer(blocks):
    """The lines below a table, RSUM and queries without a positive; None without either."""
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
    """Prints the results of a run, as metrics.json has them."""
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
    for side, confidence in results.get("confidence", {}).items():
        print(sentence(side, confidence))
    rankings = {"": results} | {
        f" by {name}": ranking for name, ranking in results.get("by_similarity", {}).items()
    }
    for by, ranking in rankings.items():
        if "asp" in ranking:
            both = " / ".join(f"{ranking['asp'][side]:.1f}" for side in ("i2t", "t2i"))
            print(f"ASP{by} i2t / t2i {both} %, of a random ranking about 50 %")
        if "coco" in ranking:
            names = ("coco_1k", "coco_5k", "cxc", "eccv")
            truths = {name: _of_truth(ranking["coco"], name) for name in names}
            print_results(truths, f"by COCO's truths{by}, in %; R-P by CxC's is RPC2")
    if "ambiguity_spearman" in results:
        rho = _signed(results["ambiguity_spearman"])
        print(f"Spearman of caption uncertainty and true number of matches {rho}")


def _signed(rho):
    """ρ with its sign; "undefined" where all values are equal, which JSON keeps as null."""
    return "undefined" if rho is None or np.isnan(rho) else f"{rho:+.2f}"


def _of_truth(results, name):
    """The results of one of COCO's truths, without its name in their keys."""
    prefix = f"{name}_"
    return {
        key.removeprefix(prefix): value for key, value in results.items() if key.startswith(prefix)
    }


ASKED = {"i2t": "Image to text", "t2i": "Text to image"}
SAID = {
    "informative": "the confidence is informative ({}): decline by it.",
    "weak": "the confidence is weak ({}, LEAST is wanted): decline by it with care.",
    "not informative": "the confidence is not informative ({}): declining at random is as good.",
    "misleading": "the confidence is misleading ({}): do not decline by it.",
    "undefined": "nothing can be said of the confidence: all answers are right, or all are wrong.",
}


def verdict(confidence):
    """Whether one may decline by the confidence of one direction: a sentence behind a colon."""
    if "why_not" in confidence:
        return f"no confidence: {confidence['why_not']}."
    if confidence["nauc"] is None or np.isnan(confidence["nauc"]):
        return SAID["undefined"]
    low, high = confidence["nauc_interval"]
    text = SAID[confidence["verdict"]].replace("LEAST", str(metrics.INFORMATIVE))
    return text.format(with_minus(f"nAUC {confidence['nauc']:.2f} [{low:.2f}, {high:.2f}]"))


def sentence(direction, confidence):
    """One line about the confidence of one direction, by its part of metrics.json."""
    if "why_not" in confidence:
        return f"{direction}: confidence was not calibrated: {confidence['why_not']}"
    names = {"best_score": "best score", "best_minus_mean": "best score − mean"}
    alone = ", ".join(
        f"{names.get(name, name)} alone {_nauc(value)}"
        for name, value in confidence["nauc_of"].items()
    )
    return (
        f"{direction}: confidence nAUC {_nauc(confidence['nauc'])} ({alone}), "
        f"calibration error {_percent(confidence['calibration_error'])} %"
    )


def _nauc(value):
    """A normalised area, 0 at random and 1 of an oracle, as the pages have it."""
    return "undefined" if value is None or np.isnan(value) else with_minus(f"{value:.2f}")


def _percent(share):
    """A share in percent, which is undefined of no query, or where all are right or wrong."""
    return "undefined" if share is None or np.isnan(share) else f"{100 * share:.1f}"


def with_minus(number):
    """A formatted number with a true minus sign, as on the axes."""
    return number.replace("-", "−")
