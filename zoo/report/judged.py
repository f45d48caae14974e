"""How sure each answer of a run is: calibrated once, for all sections of its report."""

from typing import Any, NamedTuple

import numpy as np

from zoo.confidence import Confidence
from zoo.evaluation.answers import Answers
from zoo.evaluation.calibration import calibrated, cross_fitted, measure, said_of, worth

MOST = 5000  # queries of a direction, drawn at random
LEAST_QUERIES = 10  # of a point of a curve; below it is the luck of a few
RUNS_OWN = "by the run's probes"
SCORES, UNION = "scores, cross-fitted", "scores and uncertainty, cross-fitted"
NO_PROBES = "the run has no probes"


class Judged(NamedTuple):
    """The answers of one direction, and how likely each is right.

    Attributes:
        answers: the `Answers`.
        confidence: the `Confidence` by the run's probes, or None.
        why_not: why there is none, or why no probability at all.
        source: of the probability: `RUNS_OWN`, `UNION` or `SCORES`.
        probability: `(Q,)`, or None.
        found: what it is worth, see `zoo.evaluation.calibration.measure`; or `why_not`.
    """

    answers: Answers
    confidence: Confidence | None
    why_not: str | None
    source: str | None
    probability: np.ndarray | None
    found: dict[str, Any]


def judged(run, direction):
    """The `Judged` of one direction of a `ReportedRun`.

    As a run's results have it, by its probes; where there are none, by a regression that is learnt
    without a fifth of the queries and applied to that fifth.
    """
    confidence, why_not = None, NO_PROBES
    if run.probes is not None:
        try:
            confidence = calibrated(run.probes, run.similarity, run.split, direction, run.seed)
            why_not = None
        except ValueError as error:
            why_not = str(error)
    answers = Answers.of(
        run.split,
        run.similarity,
        direction,
        MOST,
        run.seed,
        pairs=run.pairs,
        copies=None if confidence is None else confidence.copies,
    )
    if confidence is not None:
        probability = said_of(confidence, answers)
        found = measure(confidence, answers)
        return Judged(answers, confidence, None, RUNS_OWN, probability, found)
    try:
        probability = cross_fitted(answers, run.seed)
    except ValueError as error:
        why_not = f"{why_not}; {error}"
        return Judged(answers, None, why_not, None, None, {"why_not": why_not})
    source = SCORES if answers.uncertainty is None else UNION
    found = worth(probability, answers.correct)
    return Judged(answers, None, why_not, source, probability, found)
