"""How round a Gaussian is: the share of its dimensions that carry the variance."""

import numpy as np

from zoo.report.reported_run import ReportedRun
from zoo.report.section import Number, Section
from zoo.report.style import PALETTE, new_figure, styled

_BLOCK, _SHOWN = 1024, 2000
SIDES = {"images": ("images", PALETTE[0], "-"), "captions": ("captions", PALETTE[1], "--")}


def effective_dimensions(log_variance):
    """The participation ratio (Σσ²)² / (D · Σσ⁴) of every item, in (0, 1].

    It is 1 where all variances are equal (a sphere) and 1/D where one dimension has all of it.

    Args:
        log_variance: `(items, dim)`, log σ².
    """
    shares = []
    for start in range(0, len(log_variance), _BLOCK):  # in float64, a few MiB at a time
        block = np.asarray(log_variance[start : start + _BLOCK], float)
        # Relative to the largest, which cancels, so that nothing under- or overflows.
        variance = np.exp(block - block.max(axis=1, keepdims=True))
        of_block = variance.sum(axis=1) ** 2 / (variance**2).sum(axis=1)
        shares.append(of_block / block.shape[1])
    return np.concatenate(shares)


@styled
def isotropy_plot(ratios, deviations):
    """The distribution of the effective share of dimensions, and σ over the dimensions.

    Args:
        ratios: by side, `(items,)` of `effective_dimensions`.
        deviations: by side, `(items, dim)`, σ in units of the space.

    Returns:
        A matplotlib figure.
    """
    figure = new_figure(8.8, 3.6)
    left, right = figure.subplots(1, 2)
    for side, (label, color, line) in SIDES.items():
        share = 100 * np.sort(ratios[side])
        left.plot(
            share,
            100 * np.arange(1, len(share) + 1) / len(share),
            line,
            color=color,
            label=f"{label}, n = {len(share):,}",
        )
        middle = np.median(deviations[side], axis=0)
        order = np.argsort(-middle, kind="stable")
        low, high = np.percentile(deviations[side], (10, 90), axis=0)
        place = np.arange(1, len(middle) + 1)
        right.plot(place, middle[order], line, color=color, label=f"{label}: median")
        right.fill_between(place, low[order], high[order], color=color, alpha=0.15, linewidth=0)
    left.set(
        xlabel="effective share of the dimensions (%)",
        ylabel="items up to there (%)",
        xlim=(0, 103),
        ylim=(0, 103),
        title="How round: 100 % is a sphere",
    )
    right.set(
        xlabel="dimension, by falling median",
        ylabel="σ (units of the space)",
        title="σ by dimension; band: 80 % of the items",
    )
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.legend(loc="best")
    return figure


def section(run: ReportedRun):
    """How isotropic the variances are, and how much they differ between items."""
    if not run.is_gaussian:
        return None
    sides = {"images": run.split.images, "captions": run.split.captions}
    ratios, deviations, numbers = {}, {}, []
    for side, embedding in sides.items():
        log_variance = np.asarray(embedding["log_variance"])
        ratios[side] = effective_dimensions(log_variance)
        # A few thousand items show σ by dimension as well as all do.
        some = np.linspace(0, len(log_variance) - 1, min(_SHOWN, len(log_variance))).astype(int)
        deviations[side] = np.exp(0.5 * log_variance[some])
        spread = log_variance.mean(axis=1, dtype=float) / 2
        numbers += [
            Number(
                f"{side}: mean effective share of the dimensions",
                run.estimate(lambda v: 100 * np.mean(v), ratios[side]),
                "%",
                of=side,
            ),
            Number(
                f"{side}: deviation of the items' mean log σ",
                run.estimate(np.std, spread),
                "nats",
                ".3f",
                side,
            ),
        ]
    text = (
        "The effective share of an item's dimensions is (Σσ²)² / (D Σσ⁴): 100 % for a sphere, "
        f"100/D = {100 / log_variance.shape[1]:.1f} % where one dimension has all the variance. "
        "The deviation of the mean log σ says how much items differ in size at all: at 0 all are "
        "equally uncertain."
    )
    return Section(
        "isotropy",
        "How isotropic σ is",
        text,
        tuple(numbers),
        {
            "Effective share of the dimensions, and σ by dimension": isotropy_plot(
                ratios, deviations
            )
        },
    )
