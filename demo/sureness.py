"""How likely an answer is right, and when to give none: `zoo.confidence` over one gallery."""

import dataclasses
from typing import NamedTuple

import numpy as np

from zoo.arrays import centres
from zoo.confidence import (
    Confidence,
    KnownQueries,
    candidate_thresholds,
    certified_threshold,
    score_threshold,
)
from zoo.embeddings import log_uncertainty
from zoo.evaluation import EncodedSplit
from zoo.evaluation.answers import Answers
from zoo.evaluation.calibration import fitted

RISKS = (1 / 10, 1 / 5, 1 / 3, 1 / 2, 2 / 3)  # of the promises that are tried
FAILURE = 0.1  # how often a promise may fail, over the queries that certify it
UNKNOWN, ABSENT = 0.05, 0.05  # share of usual questions that may be taken for such
MOST = 2000  # queries with known answers, half to learn from and half to certify
_LEAST_KNOWN = 60  # queries of which half are compared with the other half


class Promise(NamedTuple):
    """At most a share `risk` of the answers is wrong if only those above a probability are given.

    `certified` says whether that is promised, by `certified_threshold`, or only what the
    probabilities say themselves.
    """

    risk: float
    threshold: float
    certified: bool


class Judgement(NamedTuple):
    """What is known of one query before it is answered.

    `kind` is `"unknown"` of a question that the model does not know, `"absent"` of one that
    nothing in the gallery answers, else `"known"`; `reason` says why in words.
    """

    probability: float | None
    kind: str = "known"
    reason: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Sureness:
    """What is calibrated for one side's queries under one similarity.

    Attributes:
        confidence: a `Confidence`, or None.
        promises: `Promise`s, strictest first; none without a `confidence`.
        lowest: what 19 of 20 queries' best scores reach, or minus infinity.
        by: name of the similarity whose scores tell; one that needs no pass over the gallery.
        known: `KnownQueries`, or None.
        source: a sentence on what it was made of, or why there is none.
    """

    confidence: Confidence | None = None
    promises: tuple = ()
    lowest: float = -np.inf
    by: str | None = None
    known: KnownQueries | None = None
    source: str = "Nothing says how often answers are right here."

    @classmethod
    def of_gallery(cls, gallery, side, name, seed=0):
        """Of a gallery that knows what matches: its own captions or images are the queries.

        Args:
            gallery: a `Gallery` with records.
            side: of the queries, `"captions"` or `"images"`.
            name: of the similarity that ranks.
            seed: of the halves.
        """
        known = _known(gallery, side, seed)
        encoded = EncodedSplit(
            gallery.records,
            gallery.embeddings["images"],
            gallery.embeddings["captions"],
            measure_name=gallery.encoders.measure,
        )
        direction = "t2i" if side == "captions" else "i2t"
        try:
            ranked = Answers.of(encoded, gallery.similarity(name), direction, MOST, seed)
            by = gallery.judged_by(name)
            told = ranked
            if by != name:
                told = Answers.of(encoded, gallery.similarity(by), direction, MOST, seed)
            told = dataclasses.replace(told, ranks=ranked.ranks)  # the answers are those of `name`
            learning, certifying = told.halves(seed)
            confidence = fitted(learning, seed)
        except ValueError as error:
            return cls(known=known, source=f"Nothing can be promised here: {error}.")
        probability = confidence.probability(certifying.scores, certifying.uncertainty)
        seen = confidence.probability(learning.scores, learning.uncertainty)
        return cls(
            confidence,
            promises(probability, certifying.correct, candidate_thresholds(seen)),
            score_threshold(told.scores.top[:, 0], ABSENT),
            by,
            known,
            f"Learnt from {len(learning):,} of this gallery's own {side} and certified on "
            f"{len(certifying):,} others.",
        )

    @classmethod
    def of_run(cls, gallery, side, confidence, seed=0):
        """Of a gallery without truth: the calibration of the model's run, as an estimate."""
        known = confidence.known or _known(gallery, side, seed)
        return cls(confidence, by=gallery.own_similarity, known=known).elsewhere()

    def elsewhere(self):
        """The same in front of another gallery, where it estimates and promises nothing."""
        estimates = tuple(Promise(risk, 1 - risk, False) for risk in RISKS)
        return dataclasses.replace(
            self,
            promises=() if self.confidence is None else estimates,
            lowest=-np.inf,
            source="Estimated by a calibration on another gallery: nothing is promised here.",
        )

    def promise(self, risk):
        """The `Promise` of a risk, or None: then everything is answered."""
        return next((one for one in self.promises if one.risk == risk), None)

    @property
    def usual(self):
        """The strictest promise that is certified, else to be right every second time."""
        certified = [one for one in self.promises if one.certified]
        return certified[0] if certified else self.promise(1 / 2)

    def judge(self, gallery, queries, texts=None):
        """A `Judgement` of each query.

        Args:
            gallery: the `Gallery`.
            queries: embeddings, a dict of arrays.
            texts: the captions that were embedded; None for images.
        """
        count = len(next(iter(queries.values())))
        probability, best = np.full(count, np.nan), np.full(count, np.inf)
        if self.confidence is not None:
            side = "captions" if texts is None else "images"
            scores = gallery.index(side, self.by).query_scores(queries)
            best, uncertainty = scores.top[:, 0], None
            if "uncertainty" in self.confidence.names:
                measure = gallery.encoders.measure
                uncertainty = np.asarray(log_uncertainty(queries, measure), float)
            probability = self.confidence.probability(scores, uncertainty)
        reasons = _reasons(self.known, gallery, queries, texts)
        return [
            _judgement(float(probability[i]), reasons[i], best[i] < self.lowest)
            for i in range(count)
        ]


def promises(probability, correct, candidates):
    """A `Promise` for each of `RISKS`, certified where the queries suffice.

    Args:
        probability, correct: of certifying queries.
        candidates: thresholds, which come from other queries.
    """
    found = []
    for risk in RISKS:
        threshold = certified_threshold(probability, correct, risk, FAILURE, candidates)
        certified = threshold is not None
        found.append(Promise(risk, threshold if certified else 1 - risk, certified))
    return tuple(found)


def _judgement(probability, reason, is_absent):
    if reason is not None:
        return Judgement(None, "unknown", reason)
    value = None if np.isnan(probability) else probability
    if is_absent:
        least = round(100 * (1 - ABSENT))
        return Judgement(
            value,
            "absent",
            f"of questions that have an answer here, {least} in 100 have one that scores higher "
            "than anything does now",
        )
    return Judgement(value)


def _reasons(known, gallery, queries, texts):
    """Why the model does not know a query, in words, or None, for each."""
    count = len(next(iter(queries.values())))
    if texts is None or not gallery.encoders.reads_words:
        return [None] * count if known is None else known.reasons(centres(queries), error=UNKNOWN)
    words, unknown = _counts(gallery, texts)
    if known is None:
        reasons = [None] * count
    else:
        given = {}
        if "length" in known.names:
            given["words"] = words
        if "unknown_share" in known.names:
            given["unknown_words"] = unknown
        reasons = known.reasons(centres(queries), **given, error=UNKNOWN)
    none = words <= unknown  # whatever the calibration has seen
    return [
        f"it knows none of the {n} words" if lost and n else reason
        for reason, lost, n in zip(reasons, none, words, strict=True)
    ]


def _known(gallery, side, seed):
    """`KnownQueries` of the gallery's own items: one half is what is usual, the other the test."""
    if side not in gallery.embeddings or len(gallery.names(side)) < _LEAST_KNOWN:
        return None
    means = centres(gallery.embeddings[side])
    order = np.random.default_rng(seed).permutation(len(means))[:MOST]
    usual, held = np.array_split(order, 2)
    if side == "images" or not gallery.encoders.reads_words:
        return KnownQueries.fit(means[usual], means[held], seed=seed)
    words, unknown = _counts(gallery, [gallery.captions[row] for row in held])
    return KnownQueries.fit(means[usual], means[held], words, unknown, seed=seed)


def _counts(gallery, texts):
    """The numbers of words and of unknown words of captions."""
    words = np.array([len(text.split()) for text in texts])
    unknown = np.array([len(gallery.encoders.unknown_words(text)) for text in texts])
    return words, unknown
