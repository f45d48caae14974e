"""The demo's curves (Plotly): risk–coverage, and σ while a region grows."""

import numpy as np
import plotly.graph_objects as go

from demo.map_plot import COLORS, INK, styled

LEAST = 0.02  # of the queries: the error of fewer is that of a handful


def risk_coverage(curves, direction):
    """The error that is left when the most uncertain queries are not answered.

    Args:
        curves: of `UncertaintyQuality.curves`.
        direction: `"i2t"` or `"t2i"`.

    Returns:
        `(figure, sentence)`.
    """
    from zoo.evaluation.printing import ARROWS  # which needs Keras

    curve = curves[direction]["risk_coverage"]
    coverage, risk = np.asarray(curve["coverage"]), np.asarray(curve["risk"])
    mean = curve["random_aurc"]
    first = int(np.searchsorted(coverage, LEAST))
    chosen = np.unique(np.linspace(first, len(coverage) - 1, 400).round().astype(int))
    coverage, risk = coverage[chosen], risk[chosen]
    oracle = np.maximum(0.0, 1.0 - (1.0 - mean) / coverage)
    drawing = go.Figure()
    for values, name, color, dash in (
        (risk, "by uncertainty", COLORS[0], "solid"),
        (np.full_like(risk, mean), "at random", COLORS[1], "dash"),
        (oracle, "oracle, which drops errors first", INK, "dot"),
    ):
        drawing.add_scatter(
            x=100 * coverage,
            y=100 * values,
            mode="lines",
            name=name,
            line={"color": color, "dash": dash, "width": 2},
            hovertemplate="%{x:.0f} % answered: %{y:.1f} % wrong<extra>" + name + "</extra>",
        )
    half = float(np.interp(0.5, coverage, risk))
    sentence = (
        f"{ARROWS[direction].capitalize()}: answering every query, the first result is wrong "
        f"in {100 * mean:.1f} % of cases; answering only the more certain half, in "
        f"{100 * half:.1f} %. Area under the curve {100 * curve['aurc']:.1f} (at random "
        f"{100 * mean:.1f}, the best possible {100 * curve['oracle_aurc']:.1f})."
    )
    if curve["aurc"] >= mean:
        sentence += " So in this direction this model's uncertainty does not tell where it errs."
    styled(drawing, "queries answered (%)", "first result wrong (%)", height=400)
    drawing.update_yaxes(rangemode="tozero")
    return drawing, sentence


def growing_erasure(shares, values, reference):
    """The uncertainty over the erased share of the area.

    Args:
        shares: percent of the area.
        values: the uncertainty at each.
        reference: `Reference` of images, whose median is drawn to compare with, or None.
    """
    drawing = go.Figure()
    symbol = reference.symbol
    drawing.add_scatter(
        x=list(shares),
        y=values,
        mode="lines+markers",
        line={"color": COLORS[0], "width": 2},
        name=f"{symbol} of this image",
        hovertemplate="%{x:.0f} % erased: %{y:.4g}<extra></extra>",
    )
    middle = reference.value_at(50)
    drawing.add_scatter(
        x=[shares[0], shares[-1]],
        y=[middle, middle],
        mode="lines",
        line={"color": INK, "dash": "dot"},
        name="median of the gallery's images",
        hoverinfo="skip",
    )
    return styled(drawing, "erased share of the area (%)", symbol, height=320)
