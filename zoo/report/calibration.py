"""Section on calibration: does a match probability of 70 % mean right seven times in ten?"""

import numpy as np
from scipy.special import expit

from zoo.metrics.blocks import row_blocks
from zoo.report.section import Number, Section, of_error
from zoo.report.style import (
    DIRECTION_STYLE,
    DIRECTIONS,
    GREY,
    draw_shares,
    new_figure,
    styled,
)

BINS = 10
COUNT, SURE, RIGHT = range(3)


def bin_of(probability):
    """The bin of equal width of each probability, 0 … BINS − 1."""
    return np.minimum((np.asarray(probability) * BINS).astype(np.int64), BINS - 1)


def binned(probability, right, groups=None):
    """Counts and sums by bin of probability, for each group of predictions.

    ```python
    calibration_error(binned([0.9, 0.9], [True, False]))  # 40.0
    ```

    Args:
        probability, right: `(predictions,)`, in [0, 1] and booleans.
        groups: `(predictions,)` whole numbers from 0, such as the query of each; None makes each a
            group.

    Returns `(groups, BINS, 3)`: the predictions, the sum of their probabilities, the right ones.
    """
    probability, right = np.asarray(probability, float), np.asarray(right, float)
    groups = np.arange(len(probability)) if groups is None else np.asarray(groups)
    size = int(groups.max()) + 1
    cell = groups * BINS + bin_of(probability)
    weights = (None, probability, right)
    parts = [np.bincount(cell, weight, minlength=size * BINS) for weight in weights]
    return np.stack(parts, axis=1).reshape(size, BINS, 3)


def calibration_error(bins):
    """The expected calibration error of `binned`, in percentage points.

    Σ over bins of their share of the predictions times |mean probability − share that is right|.

    Reference: Guo et al., "On calibration of modern neural networks", ICML 2017, equation 3.
    """
    total = np.sum(bins, axis=0)
    return 100 * np.abs(total[:, SURE] - total[:, RIGHT]).sum() / total[:, COUNT].sum()


def pair_bins(run, rows_at_once=None):
    """`binned` of all pairs, a group an image, and by direction the highest logit of each query."""
    bins = np.zeros((*run.pairs.shape[:1], BINS, 3))
    best_caption = np.full(run.pairs.shape[0], -np.inf)
    best_image = np.full(run.pairs.shape[1], -np.inf)
    relevance = run.split.relevance
    for start, logits in row_blocks(run.pairs, rows_at_once):
        for offset, row in enumerate(logits):
            probability = expit(row.astype(float))
            index = bin_of(probability)
            bins[start + offset, :, COUNT] = np.bincount(index, minlength=BINS)
            bins[start + offset, :, SURE] = np.bincount(index, probability, minlength=BINS)
            found = index[relevance.positives(start + offset)]
            bins[start + offset, :, RIGHT] = np.bincount(found, minlength=BINS)
        best_caption[start : start + len(logits)] = logits.max(axis=1)
        best_image = np.maximum(best_image, logits.max(axis=0))
    return bins, {"i2t": best_caption, "t2i": best_image}


@styled
def reliability_diagram(pairs, best):
    """The share of right predictions over their match probability, with 95 % Wilson intervals.

    Of `(BINS, 3)` of all pairs, and by direction of each query's best pair.
    """
    figure = new_figure(8.8, 4.2)
    axes = figure.subplots(1, 2)
    shown = [_draw(axes[0], pairs, {"color": "black", "marker": "o", "label": "all pairs"}, 0.0)]
    for direction, offset in zip(DIRECTIONS, (-0.3, 0.3), strict=True):
        shown.append(_draw(axes[1], best[direction], dict(DIRECTION_STYLE[direction]), offset))
    # Both panels have one scale. A model whose probabilities are low fills a corner of 0 … 100 %.
    end = min(103.0, 1.08 * max(shown))
    titles = ("All pairs of images and captions", "Each query's best pair")
    for axis, title in zip(axes, titles, strict=True):
        axis.plot([0, 100], [0, 100], "--", color=GREY, linewidth=1, label="perfectly calibrated")
        axis.set(xlim=(0, end), ylim=(0, end), title=title, xlabel="match probability (%)")
        axis.set_ylabel("matches among them (%)")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return figure


def section(run):
    """Reliability and expected calibration error, where a logit is the log-odds of a match."""
    title = "The raw match probability"
    if not gives_probability(run):
        text = (
            "This similarity is no log-odds: it was trained to rank, not to give the probability "
            "of a match. There is no raw probability; that above is learnt."
        )
        return Section("calibration", title, text)
    bins, logits = pair_bins(run)
    numbers = [_error(run, "all pairs", bins, "images with all captions")]
    best = {}
    for direction, words in DIRECTIONS.items():
        has_positive = run.ranks[direction].has_positive
        right = run.ranks[direction].hits(1)[has_positive]
        groups = binned(expit(logits[direction][has_positive]), right)
        best[direction] = groups.sum(axis=0)
        numbers.append(_error(run, f"{words}, each query's best pair", groups, "queries"))
    share = 100 * bins[..., RIGHT].sum() / bins[..., COUNT].sum()
    text = (
        "The raw match probability is sigmoid(logit), before any calibration: another number than "
        "the probability above, which is learnt for this gallery. Left, all pairs: "
        f"{share:.2g} % of them match, so that a small error there says little. Right, the best "
        "pair of each query. Above the diagonal the probabilities are too low, below it too high. "
        f"ECE is over {BINS} bins of equal width."
    )
    figure = reliability_diagram(bins.sum(axis=0), best)
    return Section("calibration", title, text, tuple(numbers), {"Reliability diagrams": figure})


def gives_probability(run):
    """Whether the logits are log-odds: by kind, and trained as such where the model is known."""
    if run.model is None:
        return getattr(run.similarity, "is_log_odds", False)
    return run.similarity is run.model.similarity and run.model.gives_match_probability


def _error(run, label, bins, of):
    # Resamples are weights of the groups: one product instead of adding up the resampled bins.
    flat = bins.reshape(len(bins), -1)

    def statistic(rows):
        weights = np.bincount(rows.astype(int), minlength=len(flat)).astype(float)
        return calibration_error((weights @ flat).reshape(1, BINS, 3))

    estimate = of_error(run.estimate(statistic, np.arange(len(flat))))
    return Number(f"ECE of the raw probability, {label}", estimate, "points", ".2f", of)


def _draw(axis, bins, style, offset):
    """Draws one curve with its intervals, and returns the highest number in it, in percent."""
    count, sure, right = bins[bins[:, COUNT] > 0].T
    style["label"] += f", n = {int(count.sum()):,}"
    high = draw_shares(axis, 100 * sure / count + offset, np.rint(right), np.rint(count), **style)
    return max(high.max(), 100 * (sure / count).max())
