"""Plots of uncertainty: against true matches, recall by bin, risk–coverage."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from zoo.metrics import spearman
from zoo.plots.style import (
    DIRECTION_STYLE,
    GREY,
    PALETTE,
    draw_shares,
    format_spearman,
    legend_below,
    new_figure,
    styled,
)


@styled
def uncertainty_against_matches(
    uncertainty: ArrayLike, matches: ArrayLike, measure: str = "log det Σ (nats)"
) -> Figure:
    """Each caption's uncertainty over its true number of matches, with the medians.

    ```python
    figure = uncertainty_against_matches([0.1, 0.4, 0.9], [1, 10, 100])
    ```

    Args:
        uncertainty: `(captions,)`, of `zoo.embeddings.uncertainty`.
        matches: `(captions,)`, the number of images that each is true of, ≥ 1, else a ValueError.
        measure: name of the uncertainty with its unit, for the axis.
    """
    uncertainty, matches = np.asarray(uncertainty, float), np.asarray(matches, float)
    rho = spearman(uncertainty, matches)
    if matches.min() < 1:
        raise ValueError(f"`matches` must be at least 1; received {matches.min():g}")
    figure = new_figure(5.6, 3.8)
    axis = figure.subplots()
    size, alpha = (12, 0.35) if len(matches) < 2000 else (5, 0.15)
    axis.scatter(
        matches,
        uncertainty,
        s=size,
        alpha=alpha,
        color=PALETTE[0],
        linewidths=0,
        rasterized=True,
        label="one caption",
    )
    x, low, middle, high = _quartiles(matches, uncertainty)
    axis.vlines(x, low, high, color=PALETTE[1], linewidth=1.5, alpha=0.8)
    axis.plot(x, middle, "s-", color=PALETTE[1], label="median and quartiles")
    axis.set_xscale("log")
    axis.set_xlabel("images that the caption is true of")
    axis.set_ylabel(f"caption uncertainty, {measure}")
    axis.set_title(
        f"Ambiguity of captions: Spearman {format_spearman(rho)}  (n = {len(matches):,})"
    )
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    # A marker as faint as the cloud's is invisible in the legend.
    for handle in axis.legend(loc="best").legend_handles:
        handle.set_alpha(1)
    return figure


def _quartiles(matches, uncertainty, bins=8):
    """Centres and quartiles in bins of equal width on the log axis, at least five captions each."""
    edges = np.geomspace(matches.min(), matches.max() * (1 + 1e-9), bins + 1)
    bin_of = np.clip(np.searchsorted(edges, matches, side="right") - 1, 0, bins - 1)
    rows = []
    for b in range(bins):
        inside = bin_of == b
        if inside.sum() >= 5:
            centre = np.exp(np.log(matches[inside]).mean())
            rows.append((centre, *np.percentile(uncertainty[inside], (25, 50, 75))))
    return np.array(rows).reshape(-1, 4).T


@styled
def recall_by_uncertainty_plot(
    i2t: dict[str, Any] | None = None, t2i: dict[str, Any] | None = None, k: int = 1
) -> Figure:
    """Recall@K over the bins of query uncertainty, with 95 % Wilson intervals. ρ is Spearman's
    between bin and recall: −1 where the more uncertain bin always has the lower one.

    ```python
    bins = zoo.metrics.recall_by_uncertainty(similarity, relevance, uncertainty)
    figure = recall_by_uncertainty_plot(i2t=bins)
    ```

    Args:
        i2t, t2i: results of `zoo.metrics.recall_by_uncertainty`; neither is a ValueError.
        k: the K of Recall@K.

    Reference: PCME (Chun et al., CVPR 2021) figure 6, PCME++ (Chun, ICLR 2024) figure 5.
    """
    given = _given(i2t, t2i)
    figure = new_figure(5.6, 4.0)
    axis = figure.subplots()
    for offset, (direction, bins) in zip((-0.06, 0.06), given.items(), strict=False):
        recall, count = np.asarray(bins["recall"], float), np.asarray(bins["count"])
        filled = count > 0
        position = np.arange(1, len(recall) + 1)[filled]
        recall, count = recall[filled], count[filled]
        rho = spearman(position, recall) if len(recall) > 1 else float("nan")
        style = dict(DIRECTION_STYLE[direction])
        style["label"] += f"  {format_spearman(rho)}, n = {count.sum():,}"
        draw_shares(axis, position + offset, np.rint(recall * count), count, **style)
    bins = len(np.asarray(next(iter(given.values()))["recall"]))
    axis.set_xticks(range(1, bins + 1))
    axis.set_xlabel("bin of query uncertainty  (1 = most certain)")
    axis.set_ylabel(f"Recall@{k} (%)")
    axis.set_ylim(bottom=0)
    axis.set_title(f"Recall@{k} by uncertainty")
    legend_below(figure, axis)
    return figure


@styled
def risk_coverage_plot(
    i2t: dict[str, Any] | None = None,
    t2i: dict[str, Any] | None = None,
    error: str = "1 − Recall@1",
    by: str = "by uncertainty",
    areas: bool = True,
) -> Figure:
    """The mean error of the most certain share of the queries, one panel a direction. Dashed is
    rejection at random, dotted the oracle that rejects exactly the errors.

    ```python
    figure = risk_coverage_plot(t2i=zoo.metrics.risk_coverage([0.1, 0.2, 0.3], [0, 0, 1]))
    ```

    Args:
        i2t, t2i: results of `zoo.metrics.risk_coverage`, errors 0 or 1; neither is a ValueError.
        error, by: names of the error, for the axis, and of what queries are ordered by.
        areas: whether the legend has the areas under the curves.

    Reference: Geifman and El-Yaniv, "Selective classification for deep neural networks", 2017.
    """
    given = _given(i2t, t2i)
    figure = new_figure(4.2 * len(given) + 0.4, 3.6)
    axes = figure.subplots(1, len(given), sharey=True, squeeze=False)[0]
    for axis, (direction, curve) in zip(axes, given.items(), strict=True):
        style = DIRECTION_STYLE[direction]
        coverage, risk = np.asarray(curve["coverage"]), np.asarray(curve["risk"])
        mean = curve["random_aurc"]
        oracle = np.maximum(0.0, 1.0 - (1.0 - mean) / coverage)
        for values, line, color, label, area in (
            (risk, "-", style["color"], by, curve["aurc"]),
            (np.full_like(coverage, mean), "--", GREY, "at random", mean),
            (oracle, ":", "black", "oracle", curve["oracle_aurc"]),
        ):
            label = f"{label}, area {100 * area:.1f}" if areas else label
            axis.plot(100 * coverage, 100 * values, line, color=color, label=label)
        axis.set_title(f"{style['label']}  (n = {len(coverage):,})")
        axis.set_xlabel("queries answered (%)")
        axis.set_xlim(0, 100)
        axis.legend(loc="best")
    axes[0].set_ylim(0, 1.05 * max(1.0, *(axis.dataLim.y1 for axis in axes)))
    axes[0].set_ylabel(f"{error} (%)")
    return figure


def _given(i2t, t2i):
    """Both directions as a dict without those that are None; a ValueError if both are."""
    given = {name: of for name, of in (("i2t", i2t), ("t2i", t2i)) if of is not None}
    if not given:
        raise ValueError("`i2t` or `t2i` must be given; received neither")
    return given
