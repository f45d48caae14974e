"""Answers to the questions of the eye labels, and whether what is said of them is true."""

import functools
import itertools

import numpy as np

from studies.statistics import auroc, weighted_auroc
from studies.table_rows import Row

BANDS = (0.0, 0.08, 0.2, 0.4, 0.6, 0.8, 1.01)
ENOUGH, APART = 20, 0.1  # first results of a band that counts, and how far off it may be
PARTS, SIZES = 200, (1, 2, 5, 10)


class LabelledAnswers:
    """A gallery's answers to labelled questions.

    Args:
        retriever: a `Retriever` over the gallery.
        labelled: its `zoo.evaluation.captioned.Labelled`.
    """

    def __init__(self, retriever, labelled):
        self.retriever, self.labelled = retriever, labelled

    @functools.cached_property
    def answers(self):
        """The `Answer`s of all questions, with all items: labelled are some of all ranks."""
        return self.retriever.ask(self.labelled.texts, len(self.retriever))

    @functools.cached_property
    def truth(self):
        """By question and photo, `(whether it fits, how many pairs it stands for)`."""
        labelled = self.labelled
        return {
            (labelled.texts[question], int(photo)): (fit, weight)
            for question, photo, fit, weight in zip(*labelled[2:], strict=True)
        }

    def first_results(self):
        """`(n, 2)`: what is said of each question's first result, and whether it fits, of those
        that are labelled."""
        rows = []
        for answer in self.answers:
            key = answer.question, int(answer.ids[0])
            if answer.fits is not None and key in self.truth:
                rows.append((answer.probability, self.truth[key][0]))
        return np.array(rows)

    def pairs(self):
        """`(n, 3)`: what is said of each labelled result, whether it fits, and its weight."""
        rows = []
        for answer in self.answers:
            if answer.fits is None:
                continue
            for photo, probability in zip(answer.ids.tolist(), answer.fits, strict=True):
                if (answer.question, photo) in self.truth:
                    rows.append((probability, *self.truth[answer.question, photo]))
        return np.array(rows)


def first_result_rows(name, galleries):
    """Prints first results by what is said of them; `Row`s of the band that is farthest off, and of
    the area under the curve."""
    probability, fit = np.concatenate([one.first_results() for one in galleries]).T
    print(f"\n| {name}: said of first results | number | said | true | difference |")
    print("|---|---|---|---|---|")
    apart, counted = [], []
    for low, high in itertools.pairwise(BANDS):
        part = (probability >= low) & (probability < high)
        if not part.any():
            continue
        predicted, true = probability[part].mean(), fit[part].mean()
        if part.sum() >= ENOUGH:
            apart.append(abs(predicted - true))
            counted.append(probability[part])
        print(
            f"| {low:.2f}–{min(high, 1):.2f} | {part.sum()} | {predicted:.2f} | {true:.2f} | "
            f"{predicted - true:+.2f} |"
        )
    area = auroc(probability[fit == 1], probability[fit == 0])
    print(
        f"\n{len(fit)} first results: {probability.mean():.2f} / {fit.mean():.2f}, AUC {area:.2f}"
    )
    print(
        f"Where what is said is exactly true, a band of {ENOUGH} or more is off by more than "
        f"{APART} in {100 * share_apart(counted):.0f} of 100 draws."
    )
    farthest = max(apart, default=0.0)
    bands = f"{farthest:.2f} ({len(apart)} bands of {ENOUGH} or more)"
    return [
        Row.of(f"{name}: first results, said − true", bands, "<= .10", farthest <= APART),
        Row.of(f"{name}: AUC of {len(fit)} first results", area, ">= .85", area >= 0.85),
    ]


def share_apart(bands, draws=20_000, seed=0):
    """The share of draws in which one of the bands is off by more than `APART`, where each of its
    probabilities is exactly true: so many first results cannot tell less."""
    rng, is_apart = np.random.default_rng(seed), np.zeros(draws, bool)
    for probabilities in bands:
        fit = rng.random((draws, len(probabilities))) < probabilities
        is_apart |= np.abs(fit.mean(axis=1) - probabilities.mean()) > APART
    return float(is_apart.mean())


def pair_rows(galleries, names, limits):
    """`Row`s of the weighted log loss and area under the curve of each gallery's labelled results;
    a limit of None: nothing must hold."""
    rows = []
    for gallery, name, limit in zip(galleries, names, limits, strict=True):
        probability, fit, weight = gallery.pairs().T
        probability = np.clip(probability, 1e-3, 1 - 1e-3)
        likelihood = fit * np.log(probability) + (1 - fit) * np.log(1 - probability)
        loss = -np.average(likelihood, weights=weight)
        sure = fit != 0.5
        area = weighted_auroc(probability[sure], fit[sure], weight[sure])
        must = ("", "") if limit is None else (f"<= {limit}", ">= .87")
        holds = (None, None) if limit is None else (loss <= limit, area >= 0.87)
        rows.append(Row.of(f"{name}: log loss of {len(fit)} pairs", loss, must[0], holds[0]))
        rows.append(Row.of(f"{name}: AUC of all pairs", area, must[1], holds[1]))
    return rows


def order_row(galleries):
    """A `Row` on how many lists rise."""
    lists = [answer.fits for one in galleries for answer in one.answers if answer.fits is not None]
    rising = sum(bool((np.diff(fits) > 0).any()) for fits in lists)
    return Row.of(f"of {len(lists)} lists of whole galleries, rising", str(rising), "0", not rising)


def part_rows(galleries, seed):
    """`Row`s of what is said of the first photo of small parts of a gallery, and what is true of it
    by the labels: parts are of a question's labelled photos, filled up with others."""
    rows = []
    for size in SIZES:
        rng, said_and_true = np.random.default_rng(seed), []
        for _ in range(PARTS):
            gallery = galleries[int(rng.integers(len(galleries)))]
            labelled = gallery.labelled
            question = int(rng.integers(len(labelled.texts)))
            photos = labelled.photos[labelled.questions == question].astype(int)
            rest = np.setdiff1d(np.arange(len(gallery.retriever)), photos)
            members = rng.permutation(photos)[:size]
            part = np.append(members, rng.permutation(rest)[: size - len(members)])
            text = labelled.texts[question]
            answer = gallery.retriever.ask(text, 1, among=part)
            if answer.fits is not None and (text, int(answer.ids[0])) in gallery.truth:
                fit = gallery.truth[text, int(answer.ids[0])][0]
                said_and_true.append((answer.probability, fit))
        probability, fit = np.reshape(said_and_true, (-1, 2)).mean(axis=0)
        measured = f"{probability:.2f} / {fit:.2f} ({len(said_and_true)})"
        holds = abs(probability - fit) <= APART
        rows.append(Row.of(f"parts of {size}: first photo, said / true", measured, "± .10", holds))
    return rows
