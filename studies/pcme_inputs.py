"""What makes an input uncertain: erased pixels, lost words, the words themselves."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from halo_search.errors import InputError
from zoo.data import images
from zoo.data.text.captions import drop_words, normalise, token_ids
from zoo.embeddings import uncertainty
from zoo.images.seeding import step_seed
from zoo.metrics import bootstrap, spearman
from zoo.metrics.statistics import nan_mean
from zoo.plots import retrieval_sheets
from zoo.plots.style import MARKERS, PALETTE, new_figure, styled

ERASED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of the picture's area
DROPPED = (0.0, 0.2, 0.4, 0.6, 0.8)  # probability of each word
BINS, WORDS = 5, 10
EACH = 3  # items at each end


@dataclass(frozen=True)
class Shown:
    """A model with the split that figures show of it."""

    model: Any  # a `DualEncoder` of Gaussians
    encoded: Any  # the `EncodedSplit`
    picture: Callable | None = None  # function from an image's index to its pixels, or None
    items: int = 256  # how many images and captions an experiment encodes
    seed: int = 0  # of what is drawn at random
    measure: str = "geometric_mean"  # of uncertainty, for `zoo.embeddings.uncertainty`

    def choose(self, count):
        """At most `items` of `count` positions, drawn at random, in order."""
        generator = np.random.default_rng([self.seed, count])
        return np.sort(generator.choice(count, min(self.items, count), replace=False))


def erased_uncertainty(run, chosen, shares=ERASED):
    """The uncertainty of some images with a square of each share of the area erased."""
    pictures = tf.constant(np.stack([run.picture(index) for index in chosen]))
    key = step_seed(run.seed, 0)
    columns = [
        measured(run, "images", images.erase(pictures, share, key).numpy()) for share in shares
    ]
    return np.stack(columns, axis=1)


def dropped_uncertainty(run, chosen, mode, rates=DROPPED):
    """The uncertainty of some captions that lose words with each probability.

    `mode` is of `zoo.data.captions.drop_words`. `(len(chosen), len(rates))`.
    """
    tokenizer = run.model.tokenizer
    ids = tf.constant(token_ids(tokenizer, run.encoded.records.captions[chosen]))
    words = getattr(tokenizer, "word_ids", None)
    # One seed for all rates: a word that is lost at a low rate is lost at a high one too.
    key = step_seed(run.seed, 0)
    columns = [
        measured(run, "captions", drop_words(ids, rate, key, mode, words).numpy()) for rate in rates
    ]
    return np.stack(columns, axis=1)


def measured(run, side, inputs):
    """The uncertainties of some inputs, by the run's measure."""
    embedding = run.model.tower(side).of_arrays(inputs)
    return np.asarray(uncertainty(embedding, run.measure))


@styled
def corruption_plot(curves, measure):
    """Mean uncertainty over the amount of corruption, one panel an experiment."""
    figure = new_figure(3.9 * len(curves), 3.6)
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    for number, (axis, (title, curve)) in enumerate(zip(axes, curves.items(), strict=True)):
        levels, values, label = curve
        bands = [bootstrap(nan_mean, column, resamples=200) for column in values.T]
        color = PALETTE[number]
        axis.plot(levels, [b.value for b in bands], color=color, marker=MARKERS[number])
        low, high = [b.low for b in bands], [b.high for b in bands]
        axis.fill_between(levels, low, high, color=color, alpha=0.2, linewidth=0)
        axis.set(title=f"{title}  (n = {len(values):,})", xlabel=label)
        if number == 0:
            axis.set_ylabel(f"mean uncertainty, {measure}")
    return figure


def words_of(captions):
    """The normalised words of each caption."""
    lines = []
    for start in range(0, len(captions), 8192):
        block = tf.constant(list(captions[start : start + 8192]), tf.string)
        lines += [line.decode("utf-8").split() for line in normalise(block).numpy()]
    return lines


def tf_idf(lines, bins):
    """By bin, the TF-IDF of the words that it has more often than the captions at large."""
    captions_with = Counter(word for line in lines for word in set(line))
    overall = Counter(word for line in lines for word in line)
    size = overall.total()
    counts = [Counter() for _ in range(int(np.max(bins)) + 1)]
    for line, number in zip(lines, bins, strict=True):
        counts[number].update(line)
    return [
        {
            word: count / total * np.log(len(lines) / captions_with[word])
            for word, count in counted.items()
            if captions_with[word] < len(lines) and count * size > overall[word] * total
        }
        for counted in counts
        for total in [max(1, counted.total())]
    ]


def quantile_bins(values, bins=BINS):
    """The bin of each value, bins of equal size; equal values are told apart by their order."""
    place = np.empty(len(values), int)
    place[np.argsort(values, kind="stable")] = np.arange(len(values))
    return place * bins // len(values)


@styled
def words_plot(scores, words=WORDS):
    """The words of highest TF-IDF in each bin of `tf_idf`, from certain to uncertain."""
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


def _end(number, bins):
    if number == 0:
        return ": most certain"
    return ": most uncertain" if number == bins - 1 else ""


def words_by_uncertainty(run):
    """Figure F.2: the words of captions in bins of their uncertainty."""
    lines = words_of(run.encoded.records.captions)
    values = run.encoded.caption_uncertainty
    scores = tf_idf(lines, quantile_bins(values, min(BINS, len(lines))))
    length = np.array([len(line) for line in lines])
    return words_plot(scores), {
        "spearman_of_uncertainty_and_length": spearman(values, length),
        "tf_idf": [dict(sorted(of.items(), key=lambda w: (-w[1], w[0]))[:WORDS]) for of in scores],
    }


def retrieved_by(run, side):
    """Figures F.3 and F.4: the most and the least certain images or captions, and their answers."""
    encoded = run.encoded
    if run.picture is None:
        raise InputError("figures F.3 and F.4 show pictures; this run reads features")
    pairs = encoded.pairs(run.model.similarity).in_memory()
    values = {"images": encoded.image_uncertainty, "captions": encoded.caption_uncertainty}[side]
    draw = {
        "images": retrieval_sheets.sheet_of_images,
        "captions": retrieval_sheets.sheet_of_captions,
    }
    chosen = extremes(values)
    figure = draw[side](encoded, pairs, run.picture, chosen)
    return figure, {"items": chosen.tolist(), "uncertainty": values[chosen].tolist()}


def extremes(values, each=EACH):
    """Indices of the lowest, then of the highest values, the highest last."""
    order = np.argsort(values, kind="stable")
    each = min(each, len(order) // 2)
    return np.concatenate([order[:each], order[len(order) - each :]])
