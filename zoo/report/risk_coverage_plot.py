"""Risk–coverage curves: the error that is left when the most uncertain queries are dropped."""

import numpy as np

from zoo.report.style import DIRECTION_STYLE, GREY, new_figure, styled


@styled
def risk_coverage_plot(i2t=None, t2i=None, error="1 − Recall@1"):
    """The mean error of the most certain share of the queries, one panel a direction.

    Args:
        i2t, t2i: what `zoo.metrics.risk_coverage` returned for image and for caption queries, with
            errors of 0 or 1.
        error: name of the error, for the axis.

    Returns:
        A matplotlib figure. Dashed is rejection at random, dotted the oracle that drops exactly
        the errors.

    Raises:
        ValueError: if neither direction is given.

    Reference: Geifman and El-Yaniv, "Selective classification for deep neural networks", 2017.
    """
    given = {name: curve for name, curve in (("i2t", i2t), ("t2i", t2i)) if curve is not None}
    if not given:
        raise ValueError("`i2t` or `t2i` must be given; received neither")
    figure = new_figure(4.2 * len(given) + 0.4, 3.6)
    axes = figure.subplots(1, len(given), sharey=True, squeeze=False)[0]
    for axis, (direction, curve) in zip(axes, given.items(), strict=True):
        style = DIRECTION_STYLE[direction]
        coverage, risk = np.asarray(curve["coverage"]), np.asarray(curve["risk"])
        mean = curve["random_aurc"]
        oracle = np.maximum(0.0, 1.0 - (1.0 - mean) / coverage)
        for values, line, color, label, area in (
            (risk, "-", style["color"], "by uncertainty", curve["aurc"]),
            (np.full_like(coverage, mean), "--", GREY, "at random", mean),
            (oracle, ":", "black", "oracle", curve["oracle_aurc"]),
        ):
            label = f"{label}, area {100 * area:.1f}"
            axis.plot(100 * coverage, 100 * values, line, color=color, label=label)
        axis.set_title(f"{style['label']}  (n = {len(coverage):,})")
        axis.set_xlabel("queries answered (%)")
        axis.set_xlim(0, 100)
        axis.legend(loc="best")
    axes[0].set_ylim(0, 1.05 * max(1.0, *(axis.dataLim.y1 for axis in axes)))
    axes[0].set_ylabel(f"{error} (%)")
    return figure
