"""The one place that judges: from a question's scores to probabilities, a verdict and a reason."""

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from halo_search.confidence import fits as fitting
from halo_search.confidence.confidence import Confidence
from halo_search.confidence.fits import Fits
from halo_search.confidence.known import KnownQueries, reasons
from halo_search.confidence.scores import DEPTH, QueryScores
from halo_search.embeddings.moments import GalleryIdentity

LIKELY, UNSURE = "likely", "unsure"
ABSENT, NOT_UNDERSTOOD = "nothing matches", "not understood"
VERDICTS = (LIKELY, UNSURE, ABSENT, NOT_UNDERSTOOD)
FIT = 0.5  # the probability from which a result counts as fitting
ABSENCE = 0.05  # share of answerable questions that may be told nothing matches
UNFIT = 0.3  # share of shown results that may not fit, of the certificate by default
MANY = 10  # expected fitting items from which a question is general
NOTHING_SAID = 0.8  # width of an interval that says hardly anything


class Asked(NamedTuple):
    """What is known of questions beside their scores; each `(Q,)`, a list of Q, or None."""

    prior: np.ndarray | None = None  # of `halo_search.confidence.fits.priors`, NaN of sentences
    near: np.ndarray | None = None  # (Q, k, columns), of `halo_search.confidence.bank.Near.of`
    means: np.ndarray | None = None  # this and the next two: of `KnownQueries.reasons`
    words: np.ndarray | None = None
    unknown: list[list[str]] | None = None


class Judgement(NamedTuple):
    """What is said of one question: `fits` `(k,)`, the probability that each result fits; `wanted`,
    that the first is the one wanted item; `number` of items expected to fit; `interval` of the
    share of fitting first results in nine galleries of ten; `length` of `Judge`. None: nothing can
    be said."""

    fits: np.ndarray | None
    wanted: float | None
    verdict: str
    reason: str
    number: float | None = None
    interval: tuple[float, float] | None = None
    length: Callable | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Judge:
    """What is calibrated for the questions to one gallery.

    Attributes:
        confidence, fits: a `Confidence` of `calibrate_on` and the model's `Fits`, each or None.
        by_class: whether the wanted items are all items of a class: then those alone fit.
        why_not: a sentence on why there is no confidence.
        at_chance: whether that is since the model matches the probes no better than chance.
        known: `KnownQueries` of the questions, or None.
        gallery: the `GalleryIdentity` of what is asked now. Where it is not that of the
            calibration, nothing is certified, and k is that of a grown gallery.
        noun: what an item is, `"photo"` or `"caption"`.
        unfit: the share of shown results that may not fit, of the certificate.
        note: a sentence that follows a reason with a probability.
    """

    confidence: Confidence | None = None
    fits: Fits | None = None
    by_class: bool = False
    why_not: str = "nothing says how often answers are right here: the model has no probes"
    at_chance: bool = False
    known: KnownQueries | None = None
    gallery: GalleryIdentity | None = None
    noun: str = "photo"
    unfit: float = UNFIT
    note: str = ""

    @property
    def copies(self) -> float | None:
        """Of `halo_search.confidence.agreement`, for the scores that are judged."""
        return None if self.confidence is None else self.confidence.copies

    @functools.cached_property
    def is_same_gallery(self) -> bool:
        """Whether what is asked is exactly what was calibrated on."""
        made_on = None if self.confidence is None else self.confidence.gallery
        if made_on is None or self.gallery is None:
            return made_on is not None
        return made_on.is_same(self.gallery)

    @functools.cached_property
    def cut(self) -> fitting.Cut | None:
        """The certified `halo_search.confidence.fits.Cut` at this judge's `unfit`, where there is
        one."""
        seen = None if self.confidence is None else self.confidence.in_gallery
        if self.fits is None or seen is None or not self.is_same_gallery:
            return None
        return self.fits.cut(self.unfit, seen.size)

    @functools.cached_property
    def threshold(self) -> float:
        """The probability of fitting from which the first result is likely: within what is
        certified, and one half at least."""
        return FIT if self.cut is None else max(FIT, self.cut.threshold)

    def __call__(
        self,
        scores: QueryScores | None,
        shown: np.ndarray | None = None,
        asked: Asked | None = None,
        count: int | None = None,
    ) -> list[Judgement]:
        """A `Judgement` of each question; `shown` are scores `(Q, k)` of the results, default the
        best 20; without `scores`, `QueryScores` or None, `count` is Q."""
        asked = Asked() if asked is None else asked
        count = len(scores) if scores is not None else count
        strange = self._strange(count, asked)
        if self.confidence is None or scores is None:
            nothing = Judgement(None, None, UNSURE, _sentence(self.why_not))
            return [nothing if one is None else _not_understood(one) for one in strange]
        shown = scores.top if shown is None else np.asarray(shown, np.float64)
        said = self.probabilities(scores, shown, asked)
        return [self._judgement(strange[i], said, i) for i in range(count)]

    def probabilities(self, scores, shown, asked):
        """A dict of arrays that verdicts are made of. Arguments as of a call."""
        features = self.confidence.features(scores)
        odds = self.confidence.logistic.logit(features)
        first = self.confidence.of_logit(odds)
        later = self.confidence.later(odds, shown, scores.mean, scores.variance)
        own = np.concatenate([first[:, None], later], axis=1)[:, : shown.shape[1]]
        prior = None if self.fits is None else asked.prior
        short = np.zeros(len(first), bool) if prior is None else ~np.isnan(prior)
        seen = self.confidence.in_gallery
        brought = 1.0 if seen is None else seen.brought
        present = np.ones(len(first))
        if self.fits is None:
            fit = own if self.by_class else None
            number = np.full(len(first), brought) if self.by_class else None
            ends = self.confidence.interval(first) if self.by_class else None
            present = self.confidence.presence(features)
        else:
            others, own = self.fits.others(shown), np.where(short[:, None], 0.0, own)
            plain = own + (1 - own) * others
            fit = self.fits.opinion(plain, scores, shown, asked, short)
            number = self.fits.number(scores) + np.where(short, 0.0, brought)
            number *= fit.sum(axis=1) / np.maximum(plain.sum(axis=1), 1e-12)
            ends = self.confidence.interval(fit[:, 0])
        return {
            "fits": fit,
            "wanted": first,
            "number": number,
            "present": present,
            "short": short,
            "ends": ends,
        }

    def _strange(self, count, asked):
        if self.known is not None and asked.means is not None:
            return self.known.reasons(asked.means, asked.words, asked.unknown)
        unknown = [[]] * count if asked.unknown is None else asked.unknown
        return reasons(np.zeros(count, bool), asked.words, unknown)

    def _judgement(self, strange, said, i):
        if strange is not None:
            return _not_understood(strange)
        wanted = None if said["short"][i] else float(said["wanted"][i])
        fit = None if said["fits"] is None else said["fits"][i]
        number = None if said["number"] is None else float(said["number"][i])
        ends = None  # of a short question nothing tells how far others in its gallery are off
        if said["ends"] is not None and not said["short"][i]:
            ends = tuple(float(end[i]) for end in said["ends"])
        first = float(said["wanted"][i] if fit is None else fit[0])
        is_absent, kind = said["present"][i] <= ABSENCE, None
        if self.fits is not None:
            kind = fitting.SHORT if said["short"][i] else fitting.FIRST
            # Of few words a later result may be likelier than the first by score.
            best = float(fit[:DEPTH].max()) if said["short"][i] else first
            is_absent = best < self.fits.below.get(kind, 0.0)
        if is_absent:
            reason = (
                f"{100 * (1 - ABSENCE):.0f} % of answerable questions match better than this one."
            )
            if kind == fitting.SHORT:
                reason = f"It is rare or absent here: no {self.noun} is likely to fit."
            verdict = ABSENT
        else:
            verdict = LIKELY if first >= self.threshold else UNSURE
            reason = self._reason(verdict, first, fit, number, ends)
        reason = f"{reason} {self.note}".strip()
        return Judgement(fit, wanted, verdict, reason, number, ends, self.length)

    def _reason(self, verdict, first, fit, number, ends):
        noun = self.noun
        if ends is not None and ends[1] - ends[0] >= NOTHING_SAID:
            return (
                f"There are too few examples to say how often such first {noun}s fit in this "
                "gallery."
            )
        if fit is None:
            return _sentence(f"{_frequency(first, ends)} such first {noun}s are the wanted one")
        often = _sentence(f"{_frequency(first, ends)} such first {noun}s fit")
        return f"{often} {self._how_many(verdict, fit, number)}".strip()

    def _how_many(self, verdict, fit, number):
        if number is None or self.by_class:
            return ""
        noun, likely = self.noun, int((fit >= FIT).sum())  # as many as a list of all that fits has
        number = max(number, likely)
        if number < 0.5:
            return f"Few {noun}s here fit, if any."
        is_sure = verdict == LIKELY
        if number < 1.5:
            return f"About one {noun} here {'fits' if is_sure else 'may fit'}."
        about = f"bout {_rounded(number)} {noun}s here"
        if not is_sure:
            general = "The question is general: a" if number >= MANY else "A"
            return f"{general}{about} may fit; it is unclear which."
        if likely >= round(number):
            return f"A{about} fit."
        more = " and maybe more are" if likely == len(fit) else " are"
        return f"A{about} may fit; {f'{likely}{more}' if likely > 1 else 'one is'} likely to."

    @functools.cached_property
    def length(self):
        """A function of an `error` in (0, 1) to k for the gallery that is asked, also one that has
        grown: `sys.maxsize` where nothing can be promised, None without probes."""
        return functools.cache(self._length)  # every answer asks for the same one

    def _length(self, error):
        if self.confidence.in_gallery is None:
            return None
        seen, now = self.confidence.in_gallery, self.gallery
        size = None if now is None or now.size <= seen.size else now.size
        k = self.confidence.first_k(error, size)
        return sys.maxsize if k > (size or seen.size) else k


def headline(verdict, probability, wanted=None):
    """A verdict with its number: that the first result fits, else that it is the wanted item."""
    said = wanted if probability is None else probability
    if said is None:
        return verdict if verdict == NOT_UNDERSTOOD else f"{verdict} (no probability)"
    return f"{verdict} {said:.2f}"


def list_sentence(noun, total, unfit, least=FIT):
    """What to expect of all with a probability from `least` on, of which a share does not fit."""
    if not total:
        return f"No {noun} fits with a probability of {_percent(least)} or more."
    if total == 1:
        return f"1 {noun} fits, with a probability of {_percent(1 - unfit)}."
    said = f"{total:,} {noun}s fit with a probability of {_percent(least)} or more"
    return f"{said}: expect {_percent(1 - unfit)} of the list to fit."


def leading(fits, least=FIT):
    """How many results have at least this probability before the first that has not."""
    below = np.flatnonzero(np.asarray(fits) < least)
    return int(below[0]) if len(below) else len(fits)


def _not_understood(why):
    return Judgement(None, None, NOT_UNDERSTOOD, _sentence(why))


def _rounded(number):
    """A number of items as it is told: two digits."""
    number = round(number)
    return f"{number:,}" if number < 100 else f"{round(number, 2 - len(str(number))):,}"


def _frequency(probability, ends=None):
    """A probability as a number of such questions; from … to where it may be off by a tenth."""
    low, high = (0, 0) if ends is None else (round(10 * end) for end in ends)
    if high - low > 1 and ends[1] - ends[0] >= 0.2:
        return f"about {low} to {high} in 10"
    if probability < 0.01:
        return "fewer than 1 in 100"
    if probability < 0.1:
        return f"about {round(100 * probability)} in 100"
    if probability >= 0.95:
        return "nearly all"
    return f"about {round(10 * probability)} in 10"


def _percent(share):
    return f"{100 * share:.0f} %"


def _sentence(text):
    return f"{text[0].upper()}{text[1:]}".rstrip(".") + "."
