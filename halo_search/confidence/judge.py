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
from halo_search.confidence.known import MOSTLY, KnownQueries, listed_words, reasons
from halo_search.confidence.scores import DEPTH, QueryScores
from halo_search.embeddings.moments import GalleryIdentity

LIKELY, UNSURE = "likely", "unsure"
ABSENT, NOT_UNDERSTOOD = "nothing matches", "not understood"
VERDICTS = (LIKELY, UNSURE, ABSENT, NOT_UNDERSTOOD)
FIT = 0.5  # the probability from which a result counts as fitting
ABSENCE = 0.05  # share of answerable questions that may be told nothing matches
UNFIT = 0.3  # share of shown results that may not fit, of the certificate by default
MANY = 10  # expected fitting items from which a question is general
# Items that show the rarest word of a short question, below which nothing matches it unless a
# result is likely: the least of .36, .75, 1.4 and 2.5 at which six of ten known words are refused
# that no caption of 500 of Flickr8k's test photos holds.
SHOWN = 0.75
DOUBTFUL = 0.2  # the probability below which the first result is said not to fit
NOTHING_SAID = 0.8  # width of an interval that says hardly anything


class Asked(NamedTuple):
    """What is known of questions beside their scores; each `(Q,)`, a list of Q, or None."""

    prior: np.ndarray | None = None  # of `halo_search.confidence.fits.priors`, NaN of sentences
    near: np.ndarray | None = None  # (Q, k, columns), of `halo_search.confidence.bank.Near.of`
    means: np.ndarray | None = None  # this and the next two: of `KnownQueries.reasons`
    words: np.ndarray | None = None
    unknown: list[list[str]] | None = None
    unheard: list[list[str]] | None = None  # words that neither captions hold nor the reader knows
    showing: np.ndarray | None = None  # about how many items show the rarest word
    in_words: bool = False  # then results are listed by how likely they fit


class Judgement(NamedTuple):
    """What is said of one question: `fits` `(k,)`, the probability that each result fits, best
    score first; `wanted`, that the first listed is the one wanted item; `number` of items expected
    to fit; `interval` of the share of fitting first results in nine galleries of ten; `length` of
    `Judge`; `order` `(k,)`, the places of the results as they are listed, see `listed`. None:
    nothing can be said."""

    fits: np.ndarray | None
    wanted: float | None
    verdict: str
    reason: str
    number: float | None = None
    interval: tuple[float, float] | None = None
    length: Callable | None = None
    order: np.ndarray | None = None

    def listed(self) -> "Judgement":
        """The same for results in the order in which they are listed: `fits`, none above the
        first's, and `length`, by which the first k hold all of the first by score that it
        promised."""
        if self.fits is None or self.order is None:
            return self
        fits = np.minimum.accumulate(self.fits[self.order])
        length = None if self.length is None else self._listed_length
        return self._replace(fits=fits, length=length)

    def _listed_length(self, error):
        k = self.length(error)
        if not 0 < k < len(self.order):  # later results stay in their places
            return k
        return 1 + int(np.flatnonzero(self.order < k).max())


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
        said |= {name: getattr(asked, name) for name in ("in_words", "words", "unheard", "showing")}
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
        small = scores.size < fitting.SMALL
        if self.fits is None:
            fit = own if self.by_class else None
            number = np.full(len(first), brought) if self.by_class else None
            ends = self.confidence.interval(first) if self.by_class else None
            present = self.confidence.presence(features)
        else:
            # Among few items the probes' questions find their own whatever the score.
            first = np.where(small, np.nan, first)
            others, own = self.fits.others(shown), np.where((short | small)[:, None], 0.0, own)
            plain = own + (1 - own) * others
            fit = self.fits.opinion(plain, scores, shown, asked, short)
            number = self.fits.number(scores) + np.where(short | small, 0.0, brought)
            number *= fit.sum(axis=1) / np.maximum(plain.sum(axis=1), 1e-12)
            likeliest = fit[:, :DEPTH].max(axis=1) if asked.in_words else fit[:, 0]
            ends = self.confidence.interval(likeliest)
        return {
            "fits": fit,
            "wanted": first,
            "own": own,
            "number": number,
            "present": present,
            "short": short,
            "small": small & (self.fits is not None),
            "ends": ends,
        }

    def _strange(self, count, asked):
        if self.known is not None and asked.means is not None:
            return self.known.reasons(asked.means, asked.words, asked.unknown)
        unknown = [[]] * count if asked.unknown is None else asked.unknown
        return reasons(np.zeros(count, bool), asked.words, unknown)

    def _judgement(self, strange, said, i):
        unheard = said["unheard"][i] if said["unheard"] is not None else []
        is_guess = said["words"] is not None and len(unheard) > MOSTLY * said["words"][i]
        if is_guess:
            return _not_understood(f"I don't know {listed_words(unheard)}")
        if strange is not None:
            return _not_understood(strange)
        fit = None if said["fits"] is None else said["fits"][i]
        order = None
        if fit is not None and said["in_words"]:
            order = listing(fit) if self.fits is not None else np.arange(len(fit))
        best = 0 if order is None else int(order[0])
        is_short, is_small = bool(said["short"][i]), bool(said["small"][i])
        wanted = None
        if not (is_short or is_small):
            wanted = float(said["wanted"][i] if best == 0 else said["own"][i, best])
        number = None if said["number"] is None else float(said["number"][i])
        # Nothing tells how far short questions, those to few items, or with unknown words are off.
        ends = None
        if said["ends"] is not None and not (is_short or is_small or unheard):
            ends = tuple(float(end[i]) for end in said["ends"])
        first = float(said["wanted"][i] if fit is None else fit[best])
        is_absent = said["present"][i] <= ABSENCE
        if self.fits is not None and is_short and said["showing"] is not None:
            # By two signs: what captions call otherwise looks as rare as what is not there.
            is_absent = first < FIT and said["showing"][i] < SHOWN
        elif self.fits is not None:
            least = self.fits.below.get(fitting.SHORT if is_short else fitting.FIRST, 0)
            is_absent = not is_small and first < least
        if unheard and is_absent:
            return _not_understood(f"I don't know {listed_words(unheard)}")
        if is_absent:
            verdict, reason = ABSENT, self._absent(self.fits is not None and is_short)
        else:
            verdict = LIKELY if first >= self.threshold else UNSURE
            reason = self._reason(verdict, fit, number, ends, is_short)
            if unheard:
                reason = self._partly_understood(verdict, listed_words(unheard))
        reason = f"{reason} {self.note}".strip()
        return Judgement(fit, wanted, verdict, reason, number, ends, self.length, order)

    def _absent(self, is_short):
        """Why nothing matches."""
        if is_short:
            return f"It is rare or absent here: no {self.noun} is likely to fit."
        if self.fits is None and not self.by_class:
            return f"No {self.noun} here matches as well as the wanted one usually does."
        return f"No {self.noun} here is likely to fit."

    def _reason(self, verdict, fit, number, ends, is_short):
        """A sentence on results that may fit."""
        noun = self.noun
        if ends is not None and ends[1] - ends[0] >= NOTHING_SAID:
            return f"There are too few examples to say whether the first {noun} fits."
        if fit is None:
            if verdict == LIKELY:
                return f"The first {noun} is probably the wanted one."
            return f"It is unclear whether the first {noun} is the wanted one."
        count = 0 if number is None or self.by_class else max(number, (fit >= FIT).sum())
        if verdict == LIKELY:
            if round(count) <= 1:
                return f"The first {noun} probably fits."
            return f"About {_rounded(count)} {noun}s here probably fit, the first among them."
        if count >= MANY:
            return f"About {_rounded(count)} {noun}s here may fit, but it is unclear which."
        if fit.max() < DOUBTFUL:
            return f"The first {noun} probably does not fit."
        if is_short or self.by_class:
            return f"It is unclear whether the first {noun} fits."
        # Of a description nothing tells well whether what it describes is here.
        return f"The first {noun} may fit, if what the question describes is here at all."

    def _partly_understood(self, verdict, words):
        """A sentence on results of a question with words that the model does not know."""
        if verdict == LIKELY:
            return f"I don't know {words}; the first {self.noun} probably fits the other words."
        return f"I don't know {words}, so this is a guess."

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


def listing(fits):
    """The places of results `(k,)` as they are listed: the likeliest of the best 20 by score, so
    that the first does not depend on k, then the others by how likely they fit, ties by score."""
    first = int(np.argmax(fits[:DEPTH]))
    likely = np.argsort(-fits, kind="stable")
    return np.append(first, likely[likely != first])


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


def _percent(share):
    return f"{100 * share:.0f} %"


def _sentence(text):
    return f"{text[0].upper()}{text[1:]}".rstrip(".") + "."
