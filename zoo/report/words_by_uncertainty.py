"""Which words are in certain captions, and which in uncertain ones, by TF-IDF."""

from collections import Counter

import numpy as np
import tensorflow as tf

from zoo.data.captions import normalise
from zoo.metrics import spearman
from zoo.report.section import Number, Section
from zoo.report.style import PALETTE, new_figure, styled

BINS, WORDS = 5, 10


def words_of(captions):
    """The normalised words of each caption."""
    lines = []
    for start in range(0, len(captions), 8192):
        block = tf.constant(list(captions[start : start + 8192]), tf.string)
        lines += [line.decode("utf-8").split() for line in normalise(block).numpy()]
    return lines


def tf_idf(lines, bins):
    """The TF-IDF of every word in every bin.

    tf is the share of the bin's words, idf is log(M / number of captions with the word): a word
    of all captions has 0, and one that is frequent in the bin and rare elsewhere the most.

    Args:
        lines: the words of each of M captions.
        bins: `(M,)` whole numbers from 0, the bin of each caption.

    Returns:
        A list by bin of dicts from word to score.

    Reference: PCME (Chun et al., CVPR 2021), supplementary F.2.
    """
    captions_with = Counter(word for line in lines for word in set(line))
    counts = [Counter() for _ in range(int(np.max(bins)) + 1)]
    for line, number in zip(lines, bins, strict=True):
        counts[number].update(line)
    return [
        {
            word: count / total * np.log(len(lines) / captions_with[word])
            for word, count in counted.items()
        }
        for counted in counts
        for total in [max(1, counted.total())]
    ]


def quantile_bins(values, bins=BINS):
    """The bin of equal size of each value, equal values by their order."""
    place = np.empty(len(values), int)
    place[np.argsort(values, kind="stable")] = np.arange(len(values))
    return place * bins // len(values)


@styled
def words_plot(scores, words=WORDS):
    """The words of highest TF-IDF in each bin, from certain to uncertain.

    Args:
        scores: of `tf_idf`.
        words: how many a bin.

    Returns:
        A matplotlib figure.
    """
    figure = new_figure(2.1 * len(scores) + 0.4, 0.26 * words + 1.0)
    axes = figure.subplots(1, len(scores), sharex=True)
    for number, (axis, scored) in enumerate(zip(np.atleast_1d(axes), scores, strict=True)):
        best = sorted(scored.items(), key=lambda item: (-item[1], item[0]))[:words]
        place = np.arange(len(best))
        axis.barh(place, [100 * score for _, score in best], color=PALETTE[0], height=0.7)
        axis.set_yticks(place, [word for word, _ in best])
        axis.set_ylim(words - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
        axis.set_title(f"bin {number + 1}{_end(number, len(scores))}", fontsize=9.5)
        axis.set_xlabel("TF-IDF × 100")
    return figure


def section(run):
    """The words of certain and of uncertain captions, and what length has to do with it."""
    lines = words_of(run.records.captions)
    values = run.split.caption_uncertainty
    bins = min(BINS, len(lines))
    figure = words_plot(tf_idf(lines, quantile_bins(values, bins)))
    length = np.array([len(line) for line in lines])
    number = Number(
        "Spearman's ρ of caption uncertainty and number of words",
        run.estimate(spearman, values, length),
        form="+.2f",
        of="captions",
    )
    text = (
        f"Captions in {bins} bins of equal size by their uncertainty, and the words that stand out "
        "in each: frequent in the bin, rare in all captions. If ρ with the length is near −1, "
        "uncertainty may be no more than brevity."
    )
    return Section(
        "words",
        "Words of certain and uncertain captions",
        text,
        (number,),
        {"Words of highest TF-IDF by bin of caption uncertainty": figure},
    )


def _end(number, bins):
    if number == 0:
        return ": most certain"
    return ": most uncertain" if number == bins - 1 else ""
