"""Uncertainty of captions against the number of images that they fit."""

import numpy as np

from zoo.metrics import spearman
from zoo.report.style import PALETTE, format_spearman, new_figure, styled


@styled
def uncertainty_against_matches(uncertainty, matches, measure="log det Σ (nats)"):
    """Each caption's uncertainty over its true number of matches, with the medians.

    Args:
        uncertainty: `(captions,)`, of `zoo.embeddings.uncertainty`.
        matches: `(captions,)`, how many images each caption truly fits, at least 1; the toy data
            know it.
        measure: name of the uncertainty with its unit, for the axis.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if lengths differ or a caption fits no image.
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
    axis.set_xlabel("images that the caption truly fits")
    axis.set_ylabel(f"caption uncertainty, {measure}")
    axis.set_title(
        f"Ambiguity of captions: Spearman {format_spearman(rho)}  (n = {len(matches):,})"
    )
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    # A marker as faint as the cloud's would not be seen.
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
