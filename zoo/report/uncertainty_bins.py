"""Recall in bins of rising uncertainty: does the model know where it errs?"""

import numpy as np

from zoo.metrics import spearman
from zoo.report.style import DIRECTION_STYLE, format_spearman, new_figure, styled

_Z = 1.96  # of the normal distribution, for 95 %


@styled
def recall_by_uncertainty_plot(i2t=None, t2i=None, k=1):
    """Recall@K over the bins of query uncertainty, both directions.

    Bars are 95 % Wilson intervals of a share of `count` queries. ρ is Spearman's between the bin
    and its recall: −1 says that the more uncertain, the worse.

    Args:
        i2t, t2i: what `zoo.metrics.recall_by_uncertainty` returned for image and for caption
            queries: `recall` and `count`, `(bins,)` each, from certain to uncertain.
        k: the K of Recall@K.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: if neither direction is given.

    Reference: PCME (Chun et al., CVPR 2021) figure 6, PCME++ (Chun, ICLR 2024) figure 5.
    """
    given = {name: bins for name, bins in (("i2t", i2t), ("t2i", t2i)) if bins is not None}
    if not given:
        raise ValueError("`i2t` or `t2i` must be given; received neither")
    figure = new_figure(5.6, 3.8)
    axis = figure.subplots()
    for offset, (direction, bins) in zip((-0.06, 0.06), given.items(), strict=False):
        recall, count = np.asarray(bins["recall"], float), np.asarray(bins["count"])
        filled = count > 0
        position = np.arange(1, len(recall) + 1)[filled]
        recall, count = recall[filled], count[filled]
        rho = spearman(position, recall) if len(recall) > 1 else float("nan")
        style = dict(DIRECTION_STYLE[direction])
        style["label"] += f"  {format_spearman(rho)}, n = {count.sum():,}"
        low, high = wilson(recall, count)
        axis.errorbar(
            position + offset,
            100 * recall,
            yerr=100 * np.maximum([recall - low, high - recall], 0.0),
            capsize=2.5,
            elinewidth=1,
            **style,
        )
    bins = len(np.asarray(next(iter(given.values()))["recall"]))
    axis.set_xticks(range(1, bins + 1))
    axis.set_xlabel("bin of query uncertainty  (1 = most certain)")
    axis.set_ylabel(f"Recall@{k} (%)")
    axis.set_ylim(bottom=0)
    axis.set_title(f"Recall@{k} by uncertainty")
    axis.legend(loc="best")
    return figure


def wilson(share, count):
    """The ends of the 95 % interval of a share of so many."""
    centre = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    spread = share * (1 - share) / count + _Z**2 / (4 * count**2)
    half = _Z * np.sqrt(spread) / (1 + _Z**2 / count)
    return centre - half, centre + half
