"""A logged value over the epochs of several systems, the mean of their seeds and its spread."""

import numpy as np

from zoo.report.style import DIRECTIONS, MARKERS, PALETTE, new_figure, styled


@styled
def curves_over_seeds(histories, value="asp", title="ASP (%)"):
    """One panel a direction, one curve a system: `val_i2t_asp` and `val_t2i_asp` over the epochs.

    Args:
        histories: `{system: [history, …]}`, one history a seed, as
            `zoo.training.read_history` gives them. Epochs without the value are left out.
        value: the columns' name without `val_i2t_`.
        title: what it is, with its unit.

    Returns:
        A matplotlib figure. The band is the least and the largest of the seeds.

    Raises:
        ValueError: if no history has the columns.
    """
    figure = new_figure(9.0, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    drawn = 0
    for axis, (side, name) in zip(axes, DIRECTIONS.items(), strict=True):
        for place, (system, runs) in enumerate(histories.items()):
            curves = [
                np.asarray(run[f"val_{side}_{value}"], float)
                for run in runs
                if f"val_{side}_{value}" in run
            ]
            if not curves:
                continue
            curves = np.stack([curve[: min(map(len, curves))] for curve in curves])
            measured = np.isfinite(curves).all(axis=0)
            epochs, curves = np.flatnonzero(measured) + 1, curves[:, measured]
            color, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
            axis.plot(epochs, curves.mean(0), color=color, marker=marker, label=system)
            axis.fill_between(epochs, curves.min(0), curves.max(0), color=color, alpha=0.18, lw=0)
            drawn += 1
        axis.set_title(name)
        axis.set_xlabel("epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
    if not drawn:
        raise ValueError(f"`histories` must have columns val_i2t_{value}; received none")
    axes[0].set_ylabel(title)
    axes[1].legend(loc="lower right")
    return figure
