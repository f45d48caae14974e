"""The one place that judges: from a question's scores to a probability, a verdict and a reason."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from zoo.confidence.confidence import GROWTH, Confidence
from zoo.confidence.gallery import GalleryIdentity
from zoo.confidence.scores import QueryScores
from zoo.confidence.unknown import KnownQueries, reasons

LIKELY, UNSURE = "likely", "unsure"
ABSENT, NOT_UNDERSTOOD = "nothing matches", "not understood"
VERDICTS = (LIKELY, UNSURE, ABSENT, NOT_UNDERSTOOD)
ABSENCE = 0.05  # share of questions with an answer that may be told there is none
USUAL = 0.5  # the probability from which an answer is likely where nothing is certified
NOTHING_SAID = 0.8  # width of an interval that says hardly anything
FEW_WORDS = 2  # that name something, up to which a question that is unsure is vague


class Judgement(NamedTuple):
    """What is said of one question.

    `length` is a function of an error to a k, or None; `interval` that of `Confidence.interval`.
    """

    probability: float | None
    verdict: str
    reason: str
    length: Callable | None = None
    interval: tuple[float, float] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Judge:
    """What is calibrated for the questions to one gallery.

    Attributes:
        confidence: a `Confidence` of `zoo.confidence.calibrate_on`, or None.
        why_not: a sentence on why there is none.
        known: `KnownQueries` of the questions, or None.
        gallery: the `GalleryIdentity` of what is asked now. Where it is not that of the
            calibration, nothing is certified, and k is that of a grown gallery.
    """

    confidence: Confidence | None = None
    why_not: str = "nothing says how often answers are right here: the model has no probes"
    known: KnownQueries | None = None
    gallery: GalleryIdentity | None = None

    @property
    def copies(self) -> float | None:
        """Of `zoo.confidence.agreement`, for the scores that are judged."""
        return None if self.confidence is None else self.confidence.copies

    @functools.cached_property
    def is_same_gallery(self) -> bool:
        """Whether what is asked is exactly what was calibrated on."""
        made_on = None if self.confidence is None else self.confidence.gallery
        if made_on is None or self.gallery is None:
            return made_on is not None
        return made_on.difference(self.gallery) is None

    @property
    def threshold(self) -> float:
        """The probability from which an answer is likely: certified, or one half."""
        return USUAL if self.certified is None else self.certified.threshold

    @functools.cached_property
    def certified(self):
        """The `Certificate`, where there is one and it holds here."""
        certificate = None if self.confidence is None else self.confidence.certificate
        if certificate is None or certificate.threshold is None or not self.is_same_gallery:
            return None
        return certificate

    def __call__(
        self,
        scores: QueryScores | None,
        uncertainty: np.ndarray | None = None,
        means: np.ndarray | None = None,
        words: np.ndarray | None = None,
        unknown: list[list[str]] | None = None,
        count: int | None = None,
    ) -> list[Judgement]:
        """A `Judgement` of each question.

        Args:
            scores: `QueryScores` over the gallery, with this judge's `copies`; None without a
                calibration.
            uncertainty: `(Q,)`, if and only if the calibration reads it.
            means, words, unknown: of `KnownQueries.reasons`.
            count: Q, where nothing else says it.
        """
        count = len(scores) if scores is not None else count
        strange = self._strange(count, means, words, unknown)
        if self.confidence is None or scores is None:
            return [self._without(reason) for reason in strange]
        features = self.confidence.features(scores, uncertainty)
        probability = self.confidence.of_features(features)
        logits = self.confidence.logistic.logit(features)
        present = self._presence(features)
        ends = self.confidence.interval(probability)
        return [
            self._judgement(
                strange[i],
                float(probability[i]),
                None if ends is None else (float(ends[0][i]), float(ends[1][i])),
                float(logits[i]),
                present[i],
                None if words is None else int(words[i]),
            )
            for i in range(len(strange))
        ]

    def _strange(self, count, means, words, unknown):
        if self.known is not None and means is not None:
            return self.known.reasons(means, words, unknown)
        return reasons(np.zeros(count, bool), words, [[]] * count if unknown is None else unknown)

    def _presence(self, features):
        promises = self.confidence.promises
        if promises is None or not len(promises.absent):
            return np.ones(len(features))
        return promises.presence(features)

    def _without(self, strange):
        if strange is not None:
            return Judgement(None, NOT_UNDERSTOOD, _sentence(strange))
        return Judgement(None, UNSURE, _sentence(self.why_not))

    def _judgement(self, strange, probability, ends, logit, present, words):
        def length(error):
            return self._length(error, logit)

        if strange is not None:
            return Judgement(None, NOT_UNDERSTOOD, _sentence(strange))
        if present <= ABSENCE:
            least = round(100 * (1 - ABSENCE))
            reason = f"Of 100 questions that have an answer here, {least} find a closer one"
            return Judgement(probability, ABSENT, f"{reason}.", length, ends)
        verdict = LIKELY if probability >= self.threshold else UNSURE
        reason = self._reason(verdict, probability, ends, words)
        return Judgement(probability, verdict, reason, length, ends)

    def _reason(self, verdict, probability, ends, words):
        if ends is not None and ends[1] - ends[0] >= NOTHING_SAID:
            return (
                "How often such questions find the right one first cannot be said: there are too "
                "few kinds to learn from."
            )
        often = f"{_frequency(probability, ends)} such questions find the right one first"
        if verdict == UNSURE and words is not None and words <= FEW_WORDS:
            return f"Many items fit so short a question; {often}."
        if verdict == LIKELY and self.certified is not None:
            wrong = f"{100 * self.certified.risk:.0f} %"
            return f"{_sentence(often)[:-1]}; at most {wrong} of such answers are wrong."
        return _sentence(often)

    def _length(self, error, logit):
        """k for one question; that of a gallery that has grown since is of all questions."""
        promises, now = self.confidence.promises, self.gallery
        if promises is None:
            return None
        if now is not None and now.size > promises.size:
            return promises.first_k(error, now.size)
        return int(promises.list_lengths(error, np.array([logit]))[0])


def is_void(confidence: Confidence, size: int) -> bool:
    """Whether a gallery has grown or shrunk by so much that its calibration has to be made anew."""
    made_on = confidence.gallery
    return made_on is not None and abs(size - made_on.size) > GROWTH * made_on.size


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


def _sentence(text):
    return f"{text[0].upper()}{text[1:]}".rstrip(".") + "."
