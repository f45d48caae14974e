"""Learns from captioned photos how likely other items than the wanted one fit a question."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from halo_search.confidence import Probes
from halo_search.confidence import fits as fitting
from halo_search.confidence.bank import Bank
from halo_search.confidence.fits import Fits, Strangers, Trial
from halo_search.confidence.judge import ABSENCE
from halo_search.confidence.probes import DIRECTIONS, OF_CORRECTED
from halo_search.confidence.words import CaptionBank, packaged_bank
from halo_search.embeddings.arrays import length
from zoo.evaluation import short_fits
from zoo.evaluation.captioned import Captioned, Labelled, matrices_of
from zoo.evaluation.learner import Learner, nearest
from zoo.evaluation.trial_galleries import draw_galleries

LEAST = 60  # captioned photos, half of which are asked
CLOSE = 5  # a question's best, by which ρ is learnt for a gallery of one kind


def learn_fits(
    captioned: Captioned,
    bank: CaptionBank | None = None,
    seed: int = 0,
    labelled: Sequence[Labelled] = (),
    hubs: bool = True,
    directions: Sequence[str] = DIRECTIONS[::-1],
) -> dict[str, Fits]:
    """The `halo_search.confidence.Fits` of a model, by default both ways.

    Args:
        captioned: photos and captions that the model has encoded.
        bank: captions that say which words are frequent; default: the package's.
        seed: seed of what is drawn.
        labelled: galleries of labels; short questions are then learnt from them alone.
        hubs: whether to learn of scores corrected for hubs too, where that pays.
        directions: `"t2i"`, `"i2t"` or both.
    Returns:
        `Fits` by direction; those of corrected scores under `"corrected_t2i"` and
        `"corrected_i2t"`.
    Raises:
        ValueError: if there are fewer than 60 photos, or they have one caption each: nothing then
            says what else fits.
    """
    count = length(captioned.images)
    captions = np.bincount(captioned.owners, minlength=count)
    if count < LEAST or (np.median(captions) < 2 and captioned.relevance is None):
        raise ValueError(
            f"what else fits is learnt from at least {LEAST} photos with several captions each; "
            f"received {count} photos with {np.median(captions):.0f}"
        )
    bank = packaged_bank() if bank is None else bank
    rng = np.random.default_rng(seed)
    matrices = matrices_of(captioned)
    fits = {}
    for direction in directions:
        fits[direction] = _fits_of(Learner(captioned, direction, bank, rng, matrices, labelled))
    for direction in directions if hubs else ():
        learner = Learner(captioned, direction, bank, rng, matrices, labelled)
        if learner.correct():
            fits[OF_CORRECTED + direction] = _fits_of(learner)
    return fits


def learn_short(
    captioned: Captioned,
    fits: dict[str, Fits],
    labelled: Sequence[Labelled],
    bank: CaptionBank | None = None,
    seed: int = 0,
) -> dict[str, Fits]:
    """The same `Fits`, of `learn_fits`, with what they say of short questions learnt again, which
    takes minutes less; the other arguments as of `learn_fits`."""
    bank = packaged_bank() if bank is None else bank
    matrices, learned = matrices_of(captioned), dict(fits)
    for name, known in fits.items():
        if not name.endswith("t2i"):
            continue
        rng = np.random.default_rng(seed)
        learner = Learner(captioned, "t2i", bank, rng, matrices, labelled)
        if name.startswith(OF_CORRECTED):
            learner.correct()
        short, lowest = short_fits.learn(learner, known)
        second, below = known.second | short, known.below | lowest
        learned[name] = dataclasses.replace(known, second=second, below=below)
    return learned


def _fits_of(learner: Learner) -> Fits:
    """Learns the `Fits` of a direction: ρ, a second opinion by the shape of the scores, the level
    of absent answers, and trials that show how true they are."""
    source = f"{length(learner.captioned.images):,} photos of {learner.captioned.name}"
    learned = Fits(learner.rho(), source=source, strangers=_strangers(learner))
    galleries = draw_galleries(learner, learned)
    if not galleries:
        return learned
    second, below = {}, {}
    probabilities = [gallery.plain for gallery in galleries]
    if len({gallery.photos for gallery in galleries}) > 1:  # one size teaches nothing for others
        second = _opinions(learner, galleries)
        probabilities = [_by_opinions(second, gallery.table) for gallery in galleries]
        below[fitting.FIRST] = _level_of_absence(probabilities, galleries)
    if learner.direction == "t2i" and learner.captioned.encode is not None:
        short, lowest = short_fits.learn(learner, learned)
        second |= short
        below |= lowest
    trials = _trials(probabilities, galleries)
    return dataclasses.replace(learned, second=second, below=below, trials=trials)


def _strangers(learner):
    """`Strangers`: each question's best photos that are not its own, their scores and whether they
    fit. Photos that do not travel with the model are left out; None for captions."""
    if learner.direction != "t2i":
        return None
    items, reference = learner.items, learner.captioned.reference
    reference = items if reference is None else reference[learner.direction]
    row = np.full(length(items), -1)
    row[nearest(reference, items)] = np.arange(length(reference))
    others = np.where(learner.is_owner, -np.inf, learner.scores)
    best = np.argsort(-others, axis=1, kind="stable")[:, :CLOSE]
    has_photo = row[best] >= 0
    score, fit = (
        np.take_along_axis(matrix, best, axis=1)[has_photo]
        for matrix in (learner.scores, learner.fit)
    )
    item = row[best][has_photo].astype(np.int32)
    return Strangers(score.astype(np.float32), item, fit.astype(np.float32), length(reference))


def _opinions(learner, galleries):
    """The second opinions on the first result and on later ones, `{kind: Logistic}`."""
    parts = [(gallery.table, gallery.fit) for gallery in galleries]
    return {
        fitting.FIRST: learner.opinion(fitting.FIRST, parts, slice(0, 1)),
        fitting.LATER: learner.opinion(fitting.LATER, parts, slice(1, None)),
    }


def _by_opinions(opinions, table):
    """What the second opinions say of each result of a gallery's questions, `(Q, k)`."""
    first, later = (
        opinions[kind].probability(fitting.read_by(kind, table))
        for kind in (fitting.FIRST, fitting.LATER)
    )
    return np.concatenate([first[:, :1], later[:, 1:]], axis=1)


def _level_of_absence(probabilities, galleries):
    """The probability of a first result that all but the share `ABSENCE` of the questions exceed
    from whose gallery nothing was taken out."""
    firsts = [
        probability[gallery.present, 0]
        for probability, gallery in zip(probabilities, galleries, strict=True)
    ]
    return float(np.quantile(np.concatenate(firsts), ABSENCE))


def _trials(probabilities, galleries):
    """A `Trial` of each size of galleries: what was predicted of their results, and what fits."""
    trials = []
    for photos in dict.fromkeys(gallery.photos for gallery in galleries):
        predicted, true, items = [], [], []
        for probability, gallery in zip(probabilities, galleries, strict=True):
            if gallery.photos == photos:
                predicted.append(probability[gallery.present])
                true.append(gallery.fit[gallery.present])
                items.append(gallery.items)
        asked = sum(map(len, predicted))
        trials.append(
            Trial(
                int(np.median(items)),
                _in_steps(np.concatenate(predicted)),
                _in_steps(np.concatenate(true)),
                asked // len(items),
            )
        )
    return tuple(trials)


def _in_steps(shares):
    """Shares as float16 in steps of 1/1024, which take two thirds of the room on the disk."""
    return (np.round(shares * 1024) / 1024).astype(np.float16)


def with_fits(probes: Probes, fits: dict[str, Fits], bank: Bank | None = None) -> Probes:
    """Probes, unless of classes, that say what else fits, with the bank that it was learnt with."""
    return probes if probes.by_class else dataclasses.replace(probes, fits=fits, bank=bank)
