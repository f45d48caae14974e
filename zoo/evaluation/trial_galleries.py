"""Galleries of some of the captioned photos, asked over themselves: what a second opinion is learnt
from, and trials that show how true it is."""

from typing import NamedTuple

import numpy as np

from halo_search.confidence import QueryScores
from halo_search.confidence import fits as fitting
from halo_search.confidence.calibrate import calibrate_on
from halo_search.confidence.features import WITHOUT_SOFTMAX
from halo_search.confidence.judge import Asked, Judge
from halo_search.confidence.scores import best_first
from halo_search.embeddings.arrays import centres, length, take
from zoo.evaluation.gallery import gallery_of
from zoo.evaluation.learner import BEST

SIZES = (50, 100, 250, 500, 1000)  # of galleries that teach the second opinion and cut-offs
TRIALS = 10  # galleries of a size, of different photos where there are enough
TAKEN_OUT = 0.3  # items as likely to fit as that are taken out of a world where nothing fits
_MOST_PROBES = 600  # of a gallery


class Draw(NamedTuple):
    """Questions over a gallery: what the second opinion reads, P by the scores alone, what fits,
    and of which nothing was taken out."""

    photos: int
    items: int
    table: dict[str, np.ndarray]
    plain: np.ndarray
    fit: np.ndarray
    present: np.ndarray


def draw_galleries(learner, learned):
    """The `Draw`s of galleries of some photos, asked over themselves; the others are probes."""
    draws, photos = [], length(learner.captioned.images)
    for size in _sizes(learner):
        if size > photos // 2:
            continue
        order = learner.rng.permutation(photos)
        for start in range(0, min(TRIALS, photos // size) * size, size):
            draws.append(_asked(learner, learned, order[start : start + size]))
    return [drawn for drawn in draws if drawn is not None]


def _asked(learner, learned, inside):
    """A `Draw` of the questions about some photos, asked over themselves, with the others as
    probes; of some what fits is taken out. None where this teaches nothing."""
    is_inside = np.isin(np.arange(length(learner.captioned.images)), inside)
    chosen = np.flatnonzero(is_inside[learner.photo_of_item])
    asked = np.flatnonzero(is_inside[learner.photo])
    items = take(learner.items, chosen)
    gallery = gallery_of(items, learner.captioned.similarity, learner.side, learner.hubs)
    confidence = _calibrated(learner, gallery, is_inside)
    if confidence is None:
        return None
    rows, fit = (matrix[np.ix_(asked, chosen)] for matrix in (learner.scores, learner.fit))
    keep = (learner.rng.random(len(asked)) < fitting.ANSWERABLE)[:, None] | (fit < TAKEN_OUT)
    keep |= (keep.sum(axis=1) < min(BEST, len(chosen)))[:, None]
    vectors = None
    if gallery.own_space is not None:
        vectors = gallery.item_vectors(np.arange(len(chosen)))
    scores = QueryScores.of_matrix(rows, keep, vectors, confidence.copies)
    best = best_first(np.where(keep, rows, -np.inf), scores.top.shape[1])
    plain = Judge(confidence, learned).probabilities(scores, scores.top, Asked())["fits"]
    facts = Asked(near=_near(learner, asked, chosen, best))
    table = fitting.opinion_features(plain, scores, scores.top, facts)
    true = np.take_along_axis(fit, best, axis=1)
    return Draw(len(inside), len(chosen), table, plain, true, keep.all(axis=1))


def _calibrated(learner, gallery, is_inside):
    """The confidence of a gallery of the photos inside, `(photos,)` bool, by probes about the
    others; None where hardly a probe is right or hardly one is wrong, which certifies nothing."""
    own_items = np.flatnonzero(~is_inside[learner.photo_of_item])
    probing = np.flatnonzero(~is_inside[learner.photo])
    probing = learner.rng.permutation(probing)[:_MOST_PROBES]
    own_items = own_items[np.isin(learner.photo_of_item[own_items], learner.photo[probing])]
    try:
        return calibrate_on(
            gallery,
            take(learner.queries, probing),
            take(learner.items, own_items),
            learner.photo[probing][:, None] == learner.photo_of_item[own_items],
            names=WITHOUT_SOFTMAX,
        )
    except ValueError:
        return None


def _near(learner, asked, chosen, best):
    """What captions of like photos say of the results `best`, `(questions, k)`, to the questions
    `asked` over the items `chosen`, as of `Near.of`; None without a bank."""
    if learner.near is None:
        return None
    senses = learner.senses([learner.texts[row] for row in asked])
    means = centres(learner.queries)[asked]
    return learner.near.take(chosen).of(learner.captioned.near, means, senses, best)


def _sizes(learner):
    """The gallery sizes to learn on: those of `SIZES` that the photos allow, two at least."""
    count = length(learner.captioned.images)
    sizes = [size for size in SIZES if size <= count]
    return sizes if len(sizes) > 1 else [*sizes, count]
