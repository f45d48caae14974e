"""How sure a run's answers are: calibrated on its validation split, measured on its test split."""

import dataclasses
import math
from typing import Any

import numpy as np

from zoo.confidence import (
    PORTABLE,
    Confidence,
    GalleryIdentity,
    abstention_auc,
    confidence_quality,
    score_threshold,
    smallest_k,
)
from zoo.data.split import Split
from zoo.evaluation import known, retrieval
from zoo.evaluation.answers import Answers
from zoo.files import RunFolder
from zoo.models import DualEncoder

MOST = 2000  # calibration queries of a direction, half to learn from and half to certify
ERROR, RISK, FAILURE = 0.1, 0.2, 0.1
# Of fewer, not even a tenth without an error would pass the test of `certified_threshold`.
LEAST_CERTIFYING = math.ceil(10 * math.log(FAILURE) / math.log(1 - RISK))
# The penalty of the weights is this over the queries. Of 0, 1, 3, 10 and 30 the greatest carried
# over best from seen classes to unseen ones and cost little within one split (docs/confidence.md).
SHRINKAGE = 30


def calibrate(answers: Answers, seed: int = 0) -> Confidence:
    """A `Confidence` learnt from half of some queries and certified on the others.

    Where the others are too few to certify anything, it is learnt from all of them and has no
    certificate.

    Raises:
        ValueError: if nothing can be learnt: too few queries, or hardly one right or wrong.
    """
    learning, certifying = answers.halves(seed)
    if len(certifying) < LEAST_CERTIFYING:
        return fitted(answers, seed)
    confidence = fitted(learning, seed)
    return confidence.certified(
        certifying.scores,
        certifying.correct,
        certifying.uncertainty,
        risk=RISK,
        failure=FAILURE,
    )


def fitted(answers: Answers, seed: int = 0) -> Confidence:
    """A `Confidence` learnt from all of some queries, with their uncertainty where they have one.

    Raises:
        ValueError: as `calibrate`.
    """
    penalty = max(0.01, SHRINKAGE / len(answers))  # 0.01 is the least of `fit` too
    return Confidence.fit(
        answers.scores,
        answers.correct,
        answers.uncertainty,
        names=PORTABLE,
        penalty=penalty,
        queries=answers.vectors,
        seed=seed,
    )


def cross_fitted(answers: Answers, seed: int = 0) -> np.ndarray:
    """The probability of each query, by a `Confidence` that was learnt without its fifth of them.

    Args:
        answers: of all queries.
        seed: of the fifths.

    Raises:
        ValueError: if nothing can be learnt, as of `calibrate`.
    """
    probability = np.empty(len(answers))
    order = np.random.default_rng(seed).permutation(len(answers))
    for fold in np.array_split(order, 5):
        others, held = answers.take(np.setdiff1d(order, fold)), answers.take(fold)
        confidence = fitted(others, seed)
        probability[fold] = confidence.probability(held.scores, held.uncertainty)
    return probability


def measure(confidence: Confidence, calibration: Answers, answers: Answers) -> dict[str, Any]:
    """What a calibration is worth on other queries.

    Args:
        confidence: of `calibrate`.
        calibration: the `Answers` that it was made of, for the promises about lists.
        answers: the `Answers` to measure on.

    Returns:
        A dict of JSON values, shares in [0, 1]: the figures of `confidence_quality`, `nauc_of` each
        signal alone, and what `smallest_k`, `score_threshold` and `certified_threshold` promise and
        keep; None where one can promise nothing.
    """
    probability = confidence.probability(answers.scores, answers.uncertainty)
    k = smallest_k(calibration.ranks, ERROR, calibration.num_items)
    lowest = score_threshold(calibration.match_scores, ERROR)
    threshold = None if confidence.certificate is None else confidence.certificate.threshold
    result = {
        "calibration_queries": len(calibration),
        "queries": len(answers),
        **confidence_quality(probability, answers.correct),
        "nauc_of": {
            name: abstention_auc(values, answers.correct)
            for name, values in answers.signals.items()
        },
        "smallest_k": None,
        "score_threshold": None,
        "certified_threshold": None,
    }
    if k <= calibration.num_items:
        held = float(np.mean(answers.ranks <= k))
        result["smallest_k"] = {"k": k, "promised": 1 - ERROR, "coverage": held}
    if np.isfinite(lowest):
        held = float(np.mean(answers.match_scores >= lowest))
        result["score_threshold"] = {"score": lowest, "promised": 1 - ERROR, "coverage": held}
    if threshold is not None:
        answered = probability >= threshold
        wrong = 1 - answers.correct[answered].mean() if answered.any() else float("nan")
        result["certified_threshold"] = {
            "probability": threshold,
            "promised_risk": RISK,
            "failure": FAILURE,
            "answered": float(answered.mean()),
            "risk": float(wrong),
        }
    return result


def calibrate_run(
    folder: RunFolder,
    model: DualEncoder,
    validation: Split,
    test: Split,
    encoded: retrieval.EncodedSplit,
    train: Split | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Calibrates both directions of a run, keeps the calibrations and measures them.

    Nothing that a calibration may lack, such as queries or wrong answers, is an error: the results
    say why in a sentence, and a run is never lost.

    Args:
        folder: the `RunFolder`, for the files of the calibrations.
        model: the `DualEncoder`.
        validation, test: the `zoo.data.Split`s.
        encoded: the `EncodedSplit` of the test split.
        train: the `Split` of training, so that the calibrations know what the model has seen, see
            `zoo.evaluation.known`; without it they decline no unknown question.
        seed: of the queries that are drawn and of the halves.

    Returns:
        A dict by direction: the result of `measure` on the test split, with `declined_as_unknown`,
        the share of its queries that the model is said not to know; or `why_not`, a sentence;
        and as `half_of_test` the same, calibrated on half of the test queries and measured on the
        other half.
    """
    seen, what_is_known = None, {}
    if not same_split(validation, test):
        seen = retrieval.encode(model, validation.records, validation.source)
        if train is not None:
            what_is_known = known.known_queries(model, train, seen, seed)
    results = {}
    for direction in ("i2t", "t2i"):
        path = folder.calibration_path(direction)
        path.unlink(missing_ok=True)  # of an attempt that was stopped
        try:
            answers = Answers.of(encoded, model.similarity, direction)
        except ValueError as error:
            results[direction] = {"why_not": str(error), "half_of_test": {"why_not": str(error)}}
            continue
        first, second = answers.halves(seed)
        _, of_halves = _measured(lambda first=first: first, second, seed)
        if seen is None:
            confidence, found = None, {"why_not": "the validation split is the test split"}
        else:
            confidence, found = _measured(
                lambda side=direction: Answers.of(seen, model.similarity, side, MOST, seed),
                answers,
                seed,
            )
        if confidence is not None:
            gallery = seen.captions if direction == "i2t" else seen.images
            confidence = dataclasses.replace(
                confidence,
                gallery=GalleryIdentity.of(known.coordinates(gallery)),
                known=what_is_known.get(direction),
            )
            confidence.save(path)
            if confidence.known is not None:
                facts = known.facts_of_split(model, encoded, direction)
                found["declined_as_unknown"] = float(confidence.known.declined(**facts).mean())
        results[direction] = {**found, "half_of_test": of_halves}
    return results


def same_split(first: Split, second: Split) -> bool:
    """Whether two `zoo.data.Split`s are the same images, as where a loader has no third split."""
    first, second = first.records, second.records
    return first.name == second.name and np.array_equal(first.image_ids, second.image_ids)


def _measured(calibration, answers, seed):
    """`(Confidence, result of measure)`, or None and why there is none."""
    try:
        calibration = calibration()
        confidence = calibrate(calibration, seed)
        return confidence, measure(confidence, calibration, answers)
    except ValueError as error:
        return None, {"why_not": str(error)}
