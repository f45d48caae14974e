"""Uncertainty against what is taken away: erased pixels, and words that are lost."""

import numpy as np
import tensorflow as tf

from zoo.data import images
from zoo.data.captions import drop_words, token_ids
from zoo.data.seeding import step_seed
from zoo.embeddings import uncertainty
from zoo.metrics import spearman
from zoo.report.bootstrap import bootstrap, mean, percent
from zoo.report.section import Number, Section
from zoo.report.style import MARKERS, PALETTE, new_figure, styled

ERASED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of the picture's area
DROPPED = (0.0, 0.2, 0.4, 0.6, 0.8)  # probability of each word
MODES = {"mask": "words become <unk>", "delete": "words are deleted"}


def erased_uncertainty(run, chosen, shares=ERASED):
    """The uncertainty of some images with a square of each share of the area erased.

    Each image loses squares around one place of its own, so that levels differ in size alone.

    Args:
        run: a `ReportedRun` with a model and pictures.
        chosen: indices of images.
        shares: of the area, in [0, 1).

    Returns:
        `(len(chosen), len(shares))`.
    """
    pictures = tf.constant(np.stack([run.picture(index) for index in chosen]))
    key = step_seed(run.seed, 0)
    columns = [
        measured(run, run.model.image_encoder, images.erase(pictures, share, key).numpy())
        for share in shares
    ]
    return np.stack(columns, axis=1)


def dropped_uncertainty(run, chosen, mode, rates=DROPPED):
    """The uncertainty of some captions that lose words with each probability.

    Args:
        run: a `ReportedRun` with a model.
        chosen: indices of captions.
        mode: of `zoo.data.captions.drop_words`.
        rates: probabilities of each word.

    Returns:
        `(len(chosen), len(rates))`.
    """
    tokenizer = run.model.tokenizer
    ids = tf.constant(token_ids(tokenizer, run.records.captions[chosen]))
    words = getattr(tokenizer, "word_ids", None)
    # One draw for all rates: what is lost at a low rate is lost at a high one too.
    key = step_seed(run.seed, 0)
    columns = [
        measured(run, run.model.caption_encoder, drop_words(ids, rate, key, mode, words).numpy())
        for rate in rates
    ]
    return np.stack(columns, axis=1)


def measured(run, encoder, inputs):
    """The uncertainties of some inputs, by the run's measure."""
    embedding = encoder.predict(np.asarray(inputs), batch_size=64, verbose=0)
    return np.asarray(uncertainty(embedding, run.split.measure_name))


@styled
def corruption_plot(curves, measure):
    """Mean uncertainty over what was taken away, one panel an experiment.

    Args:
        curves: by title `(levels, values, x label)`: levels in percent, values
            `(items, levels)`.
        measure: name of the uncertainty with its unit.

    Returns:
        A matplotlib figure; bands are 95 % bootstrap intervals of the mean over the items.
    """
    figure = new_figure(3.9 * len(curves), 3.6)
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    for number, (axis, (title, curve)) in enumerate(zip(axes, curves.items(), strict=True)):
        levels, values, label = curve
        bands = [bootstrap(mean, column, resamples=200) for column in values.T]
        color = PALETTE[number]
        axis.plot(levels, [b.value for b in bands], color=color, marker=MARKERS[number])
        low, high = [b.low for b in bands], [b.high for b in bands]
        axis.fill_between(levels, low, high, color=color, alpha=0.2, linewidth=0)
        axis.set(title=f"{title}  (n = {len(values):,})", xlabel=label)
        if number == 0:
            axis.set_ylabel(f"mean uncertainty, {measure}")
    return figure


def section(run):
    """Does uncertainty rise with what is lost?"""
    if run.model is None:
        return None
    curves, numbers = {}, []
    if run.picture is not None:
        chosen = run.choose(run.records.num_images)
        values = erased_uncertainty(run, chosen)
        label = "area erased (%)"
        curves["Erased pixels"] = (100 * np.array(ERASED), values, label)
        numbers += _numbers(run, "images, erased pixels", ERASED, values, "images")
    chosen = run.choose(run.records.num_captions)
    for mode, words in MODES.items():
        values = dropped_uncertainty(run, chosen, mode)
        label = "probability of losing a word (%)"
        curves[words.capitalize()] = (100 * np.array(DROPPED), values, label)
        numbers += _numbers(run, f"captions, {words}", DROPPED, values, "captions")
    text = (
        "Items drawn at random lose more and more: images a square in the mean colour of ImageNet "
        "around a place of their own, captions words at random. ρ is each item's own Spearman "
        "correlation of loss and uncertainty, averaged. Deleted words leave a short caption that "
        "training has seen the like of; <unk> says that something is missing."
    )
    if run.picture is None:
        text += " There are no pictures to erase: this run reads features."
    figures = {
        "Mean uncertainty over what was taken away": corruption_plot(curves, run.split.measure)
    }
    return Section("corruption", "Erased pixels and lost words", text, tuple(numbers), figures)


def _numbers(run, label, levels, values, of):
    each = np.array([spearman(levels, row) for row in values])
    more = values[:, -1] > values[:, 0]
    yield Number(
        f"{label}: mean ρ of loss and uncertainty", run.estimate(mean, each), "", "+.2f", of
    )
    yield Number(
        f"{label}: more uncertain at {100 * levels[-1]:.0f} % than whole",
        run.estimate(percent, more),
        "%",
        of=of,
    )
