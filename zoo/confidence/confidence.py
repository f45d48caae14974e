"""The probability that an answer is right, learned from queries whose truth is known."""

import dataclasses

import numpy as np
from scipy.special import expit

from zoo.confidence import checks, shift, storage
from zoo.confidence import groups as grouping
from zoo.confidence.certificate import Certificate
from zoo.confidence.features import (
    SIGNS,
    TEMPERED,
    candidate_temperatures,
    check_names,
    feature_names,
    query_features,
)
from zoo.confidence.gallery import GalleryIdentity
from zoo.confidence.guarantees import candidate_thresholds, certified_threshold
from zoo.confidence.kind_spread import KindSpread
from zoo.confidence.logistic import Logistic, isotonic, out_of_fold_logits, platt
from zoo.confidence.promises import GalleryPromises
from zoo.confidence.scores import QueryScores
from zoo.confidence.unknown import KnownQueries

LEAST_QUERIES, LEAST_OF_EACH = 20, 3
RECALIBRATIONS = ("platt", "isotonic")
GROWTH = 0.05  # share by which a gallery may grow or shrink before its calibration is void


@dataclasses.dataclass(frozen=True, eq=False)
class Confidence:
    """A logistic regression from a query's scores to the probability that its answer is right.

    ```python
    confidence = Confidence.fit(similarity, correct)  # queries whose truth is known
    confidence.probability(new_similarity)            # (queries,) in [0, 1]
    confidence.save("calibration.json")
    ```

    It reads `zoo.confidence.query_features`. No weight says that an answer is likelier right for a
    lower best score, or for a greater uncertainty. Probabilities are true of queries that are
    exchangeable with the calibration queries, over the same gallery; `check` tests both. For the
    gallery of an index `zoo.confidence.calibrate_on` makes one.

    Attributes:
        names: the features, in order.
        temperature: τ of the softmax over scores.
        logistic: the `Logistic` of the features.
        recalibration: None, or what `recalibration=` of `fit` gave.
        k: the event: among the first k answers is a match.
        num_queries, num_correct: of the calibration.
        reference: the `zoo.confidence.shift.Reference`, a sample of the calibration queries.
        gallery: the `GalleryIdentity` that the calibration was made on, or None.
        known: `KnownQueries`, what the model has seen in training, or None.
        certificate: the `Certificate` of `certified`, or None. It is of the gallery of the
            calibration alone.
        copies: the cosine from which answers are copies of one another, see
            `zoo.confidence.agreement`, or None.
        promises: what probes told of the gallery, see `calibrate_on`, or None.
        spread: the `KindSpread`, how far all that is said may be off in this gallery, or None.

    Relations: with one feature it is Platt scaling of that feature; σ alone is the case
        `uncertainty` alone.

    Reference: Platt, "Probabilistic outputs for support vector machines", 1999; Guo et al., "On
        Calibration of Modern Neural Networks", ICML 2017, for the temperature.
    """

    names: tuple
    temperature: float
    logistic: Logistic
    recalibration: dict | None
    k: int
    num_queries: int
    num_correct: int
    reference: shift.Reference
    gallery: GalleryIdentity | None = None
    known: KnownQueries | None = None
    certificate: Certificate | None = None
    copies: float | None = None
    promises: GalleryPromises | None = None
    spread: KindSpread | None = None

    @classmethod
    def fit(
        cls,
        similarity,
        correct,
        uncertainty=None,
        *,
        extra=None,
        names=None,
        k=1,
        recalibration=None,
        penalty=None,
        groups=None,
        gallery=None,
        queries=None,
        known=None,
        seed=0,
    ):
        """Learns from calibration queries, which training has not seen.

        Args:
            similarity: `(Q, R)`, the calibration queries' scores over the gallery, higher is
                better, or a `QueryScores` of an approximate search.
            correct: `(Q,)` booleans: the first answer is a match, or with `k` one of the first k.
            uncertainty: `(Q,)`, a feature that is taken as it is, such as log det Σ; of a positive
                measure give the logarithm. None for points.
            extra: dict from names to `(Q,)`, further features, such as `KnownQueries.features`.
            names: a list of the features to read, of those that there are; None for all. Those
                of `zoo.confidence.PORTABLE` carry over best to another gallery.
            k: what `correct` says; it is kept and shown, and changes nothing else.
            recalibration: None, `"platt"` or `"isotonic"`, fitted on each query's logit by a
                regression that has not seen it (five folds).
            penalty: of the squared standardised weights, beside the mean log likelihood; by
                default 0.01, and one over the queries where they are fewer than 100.
            groups: `(Q,)`, which queries belong together, such as the captions of one image. Each
                group counts once.
            gallery: the `GalleryIdentity` of what is searched, for `check`.
            queries: `(Q, dim)`, the queries' vectors, for `check` to see what is asked for.
            known: a `KnownQueries`, to travel with the calibration.
            seed: of the folds and of the sample of queries that is kept.

        Returns:
            A `Confidence`. τ is the candidate with the greatest penalised likelihood.

        Raises:
            ValueError: if shapes differ, a number is not finite, there are fewer than 20 queries,
                or fewer than three right or three wrong ones: then nothing can be learned.
        """
        scores = QueryScores.of(similarity)
        correct = checks.truths(correct, "correct", len(scores))
        _enough(correct)
        if recalibration not in (None, *RECALIBRATIONS):
            raise ValueError(
                f"`recalibration` must be None or one of {RECALIBRATIONS}; received "
                f"{recalibration!r}"
            )
        if penalty is None:
            penalty = max(0.01, 1 / len(correct))
        if not penalty > 0:
            raise ValueError(f"`penalty` must be positive; received {penalty}")
        names = check_names(names, feature_names(scores, uncertainty, extra))
        signs = [SIGNS.get(name, 0) for name in names]
        numbers = None if groups is None else grouping.numbered(groups, len(scores))
        weights = None if groups is None else grouping.weights(numbers)
        best, temperatures = None, candidate_temperatures(scores)
        if set(names).isdisjoint(TEMPERED):
            temperatures = temperatures[:1]
        for temperature in temperatures:
            features = query_features(scores, temperature, uncertainty, names, extra)
            logistic = Logistic.fit(features, correct, penalty, signs, weights)
            value = logistic.log_likelihood(features, correct, weights)
            value -= 0.5 * penalty * float(logistic.weights @ logistic.weights)
            if best is None or value > best[0]:
                best = value, temperature, features, logistic
        _, temperature, features, logistic = best
        if recalibration is not None:
            rng = np.random.default_rng(seed)
            logits = out_of_fold_logits(features, correct, penalty, rng, signs, numbers)
            learn = {"platt": platt, "isotonic": isotonic}[recalibration]
            recalibration = {"kind": recalibration, **learn(logits, correct)}
        return cls(
            names,
            float(temperature),
            logistic,
            recalibration,
            checks.whole(k, "k"),
            len(correct),
            int(correct.sum()),
            shift.Reference.fit(names, features, queries, seed, numbers),
            gallery,
            known,
        )

    def probability(self, similarity, uncertainty=None, *, extra=None):
        """The probability that the first answer (or one of the first k) is right.

        Args:
            similarity: `(Q, R)` over the gallery, or a `QueryScores` of an approximate search.
            uncertainty, extra: if and only if `fit` had them.

        Returns:
            `(Q,)` float64 in [0, 1].

        Raises:
            ValueError: if a shape differs, a number is not finite, or a feature is missing.
        """
        return self.of_features(self.features(similarity, uncertainty, extra=extra))

    def interval(self, probability, error=0.1):
        """Where the share of right answers to such questions lies, in 1 − error of galleries.

        A probability is the best that the probes tell. What they cannot tell is how much harder or
        easier the kinds of this gallery are than theirs, which matters where either are few.

        Args:
            probability: `(Q,)` that was said.
            error: in (0, 1).

        Returns:
            `(low, high)`, `(Q,)` each; None where the calibration was not made by
            `zoo.confidence.calibrate_on`.
        """
        return None if self.spread is None else self.spread.interval(probability, error)

    def logit(self, similarity, uncertainty=None, *, extra=None):
        """The log odds behind `probability`, before any recalibration, `(Q,)`.

        Raises:
            ValueError: as `probability`.
        """
        return self.logistic.logit(self.features(similarity, uncertainty, extra=extra))

    def certified(
        self,
        similarity,
        correct,
        uncertainty=None,
        *,
        extra=None,
        risk=0.2,
        failure=0.1,
        groups=None,
        seed=0,
    ):
        """This confidence with a threshold from which its answers are certified.

        Candidates for the threshold come from the queries that `fit` has seen, so that the
        certifying queries are needed for nothing else; see `certified_threshold`.

        Args:
            similarity, correct, uncertainty, extra: as of `fit`, of certifying queries, which `fit`
                has not seen.
            risk, failure: of the promise.
            groups, seed: of `certified_threshold`.

        Returns:
            A `Confidence` with a `certificate`, whose threshold is None where the queries do not
            suffice to promise it.

        Raises:
            ValueError: as `probability` and `certified_threshold`.
        """
        probability = self.probability(similarity, uncertainty, extra=extra)
        seen = self.of_features(self.reference.sample[:, : len(self.names)])
        candidates = candidate_thresholds(seen)
        threshold = certified_threshold(
            probability, correct, risk, failure, candidates, groups, seed
        )
        certificate = Certificate(risk, failure, threshold, len(probability))
        return dataclasses.replace(self, certificate=certificate)

    def of_features(self, features):
        """The probability of queries by what `features` gave, `(Q,)`."""
        logit = self.logistic.logit(features)
        if self.recalibration is None:
            return expit(logit)
        if self.recalibration["kind"] == "platt":
            return expit(self.recalibration["slope"] * logit + self.recalibration["shift"])
        return np.interp(logit, self.recalibration["logit"], self.recalibration["probability"])

    def features(self, similarity, uncertainty=None, *, extra=None):
        """What `probability` reads of the queries, `(Q, features)`, see `names`.

        Raises:
            ValueError: as `probability`.
        """
        scores = QueryScores.of(similarity)
        given = feature_names(scores, uncertainty, extra)
        surplus = [
            name
            for name in ("uncertainty", *(extra or {}))
            if name in given and name not in self.names
        ]
        if surplus:
            raise ValueError(
                f"this confidence was fitted without {', '.join(surplus)}; leave it out"
            )
        return query_features(scores, self.temperature, uncertainty, self.names, extra)

    def first_k(self, error, scores=None, uncertainty=None):
        """How many of the first answers hold the wanted item with probability ≥ 1 − error, here.

        Args:
            error: in (0, 1).
            scores, uncertainty: of single queries, as of `probability`: then each has a k of its
                own. None: the one k of the gallery.

        Returns:
            An int, or `(Q,)` int64; the number of items + 1 where nothing can be promised.

        Raises:
            ValueError: if the calibration was not made by `zoo.confidence.calibrate_on`.
        """
        promises = self._promises()
        if scores is None:
            return promises.first_k(error)
        return promises.list_lengths(error, self.logit(scores, uncertainty))

    def score_threshold(self, error):
        """The λ of which {items with score ≥ λ} holds the wanted item with probability ≥ 1 − error.

        Raises:
            ValueError: as `first_k`.
        """
        return self._promises().score_threshold(error)

    def absence_p_values(self, scores, uncertainty=None, num_items=None):
        """p-values of "nothing in this gallery matches", see `zoo.confidence.absence_p_values`.

        Args:
            scores, uncertainty: as of `probability`.
            num_items: number of items now, where the gallery has grown since.

        Raises:
            ValueError: as `first_k`.
        """
        return self._promises().absence(self.features(scores, uncertainty), num_items)

    def presence_p_values(self, scores, uncertainty=None):
        """p-values of "something in this gallery matches": small for queries unlike those that
        have a match.

        Raises:
            ValueError: as `first_k`.
        """
        return self._promises().presence(self.features(scores, uncertainty))

    def check_size(self, num_items):
        """Refuses a gallery of another size than the calibration's.

        Raises:
            ValueError: if the calibration knows its gallery, and the number of items differs by
                more than 5 %.
        """
        if self.gallery is None or abs(num_items - self.gallery.size) <= GROWTH * self.gallery.size:
            return
        raise ValueError(
            f"the calibration was made on a gallery of {self.gallery.size:,} items and is not true "
            f"of one of {num_items:,}: calibrate on this gallery, see zoo.confidence.calibrate_on"
        )

    def _promises(self):
        if self.promises is None:
            raise ValueError(
                "this calibration has seen no probes: make one with zoo.confidence.calibrate_on"
            )
        return self.promises

    def check(
        self,
        similarity,
        uncertainty=None,
        gallery=None,
        level=0.05,
        *,
        extra=None,
        queries=None,
        groups=None,
        seed=0,
    ):
        """Whether the calibration still holds for these queries, and one sentence that says so.

        Args:
            similarity, uncertainty, extra: of new queries, as of `probability`; no truth is needed.
            gallery: the `GalleryIdentity` of what is searched now.
            queries: `(Q, dim)`, the queries' vectors. If `fit` had them too, a shift to other
                things that are asked for is seen where scores alone hide it.
            level: how often queries like the calibration's may be refused at most.
            groups: `(Q,)`, which of the queries belong together; one of each is looked at.
            seed: of that draw.

        Returns:
            A `zoo.confidence.Verdict`.
        """
        features = self.features(similarity, uncertainty, extra=extra)
        if groups is not None:
            numbers = grouping.numbered(groups, len(features))
            chosen = grouping.one_of_each(numbers, np.random.default_rng(seed))
            features = features[chosen]
            queries = None if queries is None else np.asarray(queries)[chosen]
        return shift.check(self, features, queries, gallery, level)

    def save(self, path):
        """Writes the calibration as one JSON file, whole or not at all.

        Raises:
            InputError: if it cannot be written.
        """
        storage.write(self, path)

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote.

        Raises:
            InputError: if the file is missing or is not a calibration; it says what is wrong.
        """
        return storage.read(cls, path)


def _enough(correct):
    right = int(correct.sum())
    if len(correct) < LEAST_QUERIES:
        raise ValueError(
            f"a calibration needs at least {LEAST_QUERIES} queries; received {len(correct)}"
        )
    if min(right, len(correct) - right) < LEAST_OF_EACH:
        raise ValueError(
            f"`correct` must have at least {LEAST_OF_EACH} right and {LEAST_OF_EACH} wrong queries "
            f"to tell them apart; received {right} right and {len(correct) - right} wrong"
        )
