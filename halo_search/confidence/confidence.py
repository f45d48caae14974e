"""The probability that an answer is right, true on the gallery that is asked."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from halo_search.confidence import quality
from halo_search.confidence.features import (
    SIGNS,
    Logistic,
    feature_names,
    query_features,
    temperature_of,
)
from halo_search.confidence.known import KnownQueries
from halo_search.confidence.scores import QueryScores
from halo_search.confidence.sigmoid import expit, logit
from halo_search.confidence.students_t import students_quantile
from halo_search.embeddings import checks
from halo_search.embeddings.moments import GalleryIdentity
from halo_search.errors import InputError
from halo_search.files.atomic import write_text
from halo_search.files.json_files import pack, unpack
from halo_search.files.written import read_sealed, sealed

FORMAT, VERSION = "halo-confidence", 8
READ = (7, VERSION)  # version 7 knows no temperature, and reads no softmax
LEAST, LEAST_OF_EACH = 20, 3  # probes, and of them right ones and wrong ones
GROWTH = 0.05  # share by which a gallery may grow or shrink before its calibration is void
PENALTY = 0.01


def fitted(names, features, correct, weights=None, penalty=None):
    """The `Logistic` of named features `(Q, names)`, with their signs."""
    if penalty is None:
        penalty = max(PENALTY, 1 / len(correct))
    return Logistic.fit(features, correct, penalty, [SIGNS.get(one, 0) for one in names], weights)


@dataclasses.dataclass(frozen=True, eq=False)
class InGallery:
    """What probes tell of one gallery beyond its first answers; made by `calibrate_on`."""

    size: int  # items of the gallery
    ranks: np.ndarray  # of the probes whose rank was counted, 1 = first
    groups: np.ndarray  # their numbers of groups
    brought: float  # mean number of own items per probe
    ranked: Logistic | None  # of `rank_features`: whether answer j ≥ 2 is an own item
    matcher: Logistic | None  # tells probes with their own items in the gallery from those without
    present: np.ndarray  # its sorted log odds, of probes with their own items
    deviation: float  # of `halo_search.confidence.calibrate.deviation`
    num_kinds: int  # of the probes
    # what no probability exceeds, see `halo_search.confidence.quality.ceiling`
    ceiling: float = 1.0
    likeness: np.ndarray | None = None  # of the probes' items to the gallery; None: all weigh alike


@dataclasses.dataclass(frozen=True, eq=False)
class Confidence:
    """A logistic regression from a query's scores to the probability that its answer is right.

    ```python
    confidence = Confidence.fit(similarity, correct)  # queries whose truth is known
    confidence.probability(new_similarity)            # (queries,) in [0, 1]
    confidence.save("calibration.json")
    ```

    It reads `halo_search.confidence.query_features`; a higher best score never lowers the
    probability, a greater uncertainty never raises it. Valid for queries exchangeable with those of
    the calibration, over the same gallery. `halo_search.confidence.calibrate_on` calibrates for the
    gallery of an index.

    Attributes:
        names, logistic: the features, in order, and their `Logistic`.
        num_queries, num_correct: of the calibration.
        gallery: the `GalleryIdentity` that the calibration was made on, or None.
        known: `KnownQueries`, what the model has seen in training, or None.
        copies: the cosine from which answers are copies of one another, or None.
        in_gallery: the `InGallery`, what probes tell of the gallery, or None.
        temperature: of the softmax over the gallery, in units of the scores; None of calibrations
            that read none.

    Relations: with one feature it is Platt scaling of that feature.

    Reference: Platt, "Probabilistic outputs for support vector machines", 1999; Guo et al., "On
        Calibration of Modern Neural Networks", ICML 2017, for the softmax.
    """

    names: tuple[str, ...]
    logistic: Logistic
    num_queries: int
    num_correct: int
    gallery: GalleryIdentity | None = None
    known: KnownQueries | None = None
    copies: float | None = None
    in_gallery: InGallery | None = None
    temperature: float | None = None

    @classmethod
    def fit(cls, similarity, correct, uncertainty=None, *, names=None, penalty=None, groups=None):
        """Learns from calibration queries, which training has not seen.

        Args:
            similarity: `(Q, R)`, the calibration queries' scores over the gallery, higher is
                better, or a `QueryScores` of an approximate search.
            correct: `(Q,)` booleans: the first answer is a match.
            uncertainty: `(Q,)`, taken as it is (of a positive measure give the logarithm), or None.
            names: a list of the features to read; None for all that there are.
            penalty: of the squared standardised weights, beside the mean log likelihood; by default
                0.01, and one over the queries where they are fewer than 100.
            groups: `(Q,)`, which queries belong together, as captions of one image; each counts
                once.

        Raises:
            ValueError: if shapes differ, a number is not finite, there are fewer than 20 queries,
                or fewer than three right or three wrong ones: then nothing can be learned.
        """
        scores = QueryScores.of(similarity)
        correct = checks.truths(correct, "correct", len(scores))
        right = int(correct.sum())
        if len(correct) < LEAST:
            raise ValueError(
                f"a calibration needs at least {LEAST} queries; received {len(correct)}"
            )
        if min(right, len(correct) - right) < LEAST_OF_EACH:
            raise ValueError(
                f"`correct` must have at least {LEAST_OF_EACH} right and {LEAST_OF_EACH} wrong "
                f"queries to tell them apart; received {right} right and {len(correct) - right} "
                "wrong"
            )
        if penalty is not None and not penalty > 0:
            raise ValueError(f"`penalty` must be positive; received {penalty}")
        there = feature_names(scores, uncertainty)
        if names is not None:
            unknown = [name for name in names if name not in there]
            if unknown or not len(names) or isinstance(names, str):
                raise ValueError(f"`names` must be a list of {', '.join(there)}; received {names}")
            there = tuple(name for name in there if name in names)
        temperature = temperature_of(scores)
        features = query_features(scores, uncertainty, there, temperature)
        weights = None if groups is None else checks.weights(checks.numbered(groups, len(scores)))
        logistic = fitted(there, features, correct, weights, penalty)
        taught = len(correct), int(correct.sum())
        return cls(there, logistic, *taught, temperature=temperature)

    def probability(self, similarity, uncertainty=None):
        """The probability that the first answer is right, `(Q,)` float64 in [0, 1], of scores `(Q,
        R)` or a `QueryScores`, with the uncertainty if `fit` had it. A ValueError if a shape
        differs, a number is not finite, or a feature is missing."""
        return self.of_logit(self.logit(similarity, uncertainty))

    def of_logit(self, odds):
        """The probability at log odds: never above what the most likely probes have shown."""
        return np.minimum(expit(odds), 1.0 if self.in_gallery is None else self.in_gallery.ceiling)

    def logit(self, similarity, uncertainty=None):
        """The log odds behind `probability`, `(Q,)`, which know no ceiling; raises as it does."""
        return self.logistic.logit(self.features(similarity, uncertainty))

    def features(self, similarity, uncertainty=None):
        """What `probability` reads, `(Q, features)`, see `names`; raises as it does."""
        if uncertainty is not None and "uncertainty" not in self.names:
            raise ValueError("this confidence was fitted without uncertainty; leave it out")
        scores = QueryScores.of(similarity)
        return query_features(scores, uncertainty, self.names, self.temperature)

    def later(self, first, scores, mean, variance):
        """How likely the answers after the first are wanted items too, `(Q, k − 1)`, by the log
        odds of the first and scores `(Q, k)`; zeros where the calibration has seen no probes."""
        ranked = None if self.in_gallery is None else self.in_gallery.ranked
        if ranked is None or scores.shape[1] < 2:
            return np.zeros((len(scores), max(0, scores.shape[1] - 1)))
        likely = ranked.probability(rank_features(first, scores, mean, variance))
        return np.minimum(likely, self.in_gallery.ceiling)

    def interval(self, probability, error=0.1):
        """`(low, high)`, `(Q,)` each: where the share of right answers to questions with such
        probabilities lies, in 1 − error of galleries, whose kinds may be harder or easier than the
        probes'; None where the calibration was not made by
        `halo_search.confidence.calibrate_on`."""
        seen = self.in_gallery
        if seen is None or seen.num_kinds < 2:
            return None
        within = 1 - checks.share(error, "error") / 2
        width = seen.deviation * students_quantile(within, seen.num_kinds - 1)
        odds = logit(np.asarray(probability, np.float64))
        return expit(odds - width), expit(odds + width)

    def first_k(self, error, num_items=None):
        """How many of the first answers hold the wanted item with probability ≥ 1 − error, here, or
        of `num_items` since. The number of items + 1 where nothing can be promised; a ValueError if
        the calibration is not of `halo_search.confidence.calibrate_on`."""
        if (seen := self.in_gallery) is None:
            raise ValueError("this calibration has seen no probes: make one with `calibrate_on`")
        ranks = np.minimum(seen.ranks, seen.size + 1)
        return quality.smallest_k(ranks, error, seen.size, seen.groups, num_items)

    def presence(self, features):
        """p-values of "something in this gallery matches", `(Q,)`: small for queries unlike those
        that have a match. Ones where the probes cannot tell."""
        seen = self.in_gallery
        if seen is None or seen.matcher is None:
            return np.ones(len(features))
        at_most = np.searchsorted(seen.present, seen.matcher.logit(features), side="right")
        return (1 + at_most) / (len(seen.present) + 1)

    def is_void(self, num_items):
        """Whether a gallery has grown or shrunk too much for its calibration."""
        made_on = self.gallery
        return made_on is not None and abs(num_items - made_on.size) > GROWTH * made_on.size

    def save(self, path):
        """Writes the calibration as one JSON file, whole or not at all; InputError if it cannot."""
        contents = {"format": FORMAT, "version": VERSION, "calibration": pack(self)}
        write_text(Path(path), json.dumps(sealed(contents), allow_nan=False) + "\n")

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote; an InputError says what is wrong with a file."""
        value = read_sealed(path)
        if value.get("format") != FORMAT:
            raise InputError(f"{path}: is not a calibration")
        if value.get("version") not in READ:
            raise InputError(
                f"{path}: is a calibration of version {value.get('version')!r}, not of version "
                f"{VERSION}: make it again, with `halo search build` or "
                "zoo.Retriever.build and its save"
            )
        return unpack(cls, {"temperature": None, **value["calibration"]})


def rank_features(first, scores, mean, variance):
    """What tells whether answer j ≥ 2 is a wanted item, `(Q, k − 1, 3)`: the log odds of the first
    answer; how far j is behind it, in standard deviations of the query's scores; and log j."""
    rank = np.arange(2, scores.shape[1] + 1)
    deviation = np.maximum(np.sqrt(variance), 1e-12)[:, None]
    columns = (
        np.broadcast_to(np.asarray(first)[:, None], (len(scores), len(rank))),
        np.minimum((scores[:, :1] - scores[:, 1:]) / deviation, 1e6),
        np.broadcast_to(np.log(rank), (len(scores), len(rank))),
    )
    return np.stack(columns, axis=-1)
