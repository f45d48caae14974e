"""The run that a report is about, and how likely each of its answers is right."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from zoo import metrics, similarities
from zoo.confidence import Confidence, Probes
from zoo.data.records import Records
from zoo.data.records.sources import Split
from zoo.evaluation.answers import Answers
from zoo.evaluation.calibration import calibrated, cross_fitted, measure, said_of, worth
from zoo.evaluation.retrieval import EncodedSplit, encode
from zoo.metrics.statistics import RESAMPLES, bootstrap
from zoo.models import DualEncoder
from zoo.report.style import DIRECTIONS

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
    """The `Judged` of one direction of a `ReportedRun`: as its results have it, by its probes.

    Where there are none, by a regression that is learnt without a fifth of the queries and applied
    to that fifth.
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


@dataclasses.dataclass(frozen=True, eq=False)
class ReportedRun:
    """An evaluated run as the sections of its report read it.

    ```python
    run = zoo.report.of_model(model, split, "my run")
    zoo.report.write_report([run], "report")
    ```

    Attributes:
        name: of the run in the report.
        split: an `EncodedSplit`.
        similarity: the layer or function to rank by.
        model: the `DualEncoder`; None if nothing can be encoded.
        picture: function from an image's index to its pixels, 0 … 255, or None.
        true_matches: `(M,)`, the number of images that each caption is true of; None if unknown.
        generic: a caption that is true of every image.
        probes: the run's `zoo.confidence.Probes`, or None.
        items: number of images or captions that an experiment encodes.
        resamples: of the bootstrap.
        seed: of everything that is drawn at random.
    """

    name: str
    split: EncodedSplit
    similarity: Any
    model: Any = None
    picture: Callable | None = None
    true_matches: np.ndarray | None = None
    generic: str = "a picture."
    probes: Probes | None = None
    items: int = 256
    resamples: int = RESAMPLES
    seed: int = 0

    @property
    def records(self) -> Records:
        return self.split.records

    @property
    def is_uncertain(self) -> bool:
        """Whether the embeddings of both sides have an uncertainty."""
        return self.split.image_uncertainty is not None

    @property
    def is_gaussian(self) -> bool:
        return "log_variance" in self.split.images

    @functools.cached_property
    def pairs(self) -> Any:
        """All similarities, kept where they fit into 1 GiB."""
        return self.split.pairs(self.similarity).kept()

    @functools.cached_property
    def ranks(self) -> dict[str, metrics.QueryRanks]:
        """`QueryRanks` by direction, both ranked in blocks."""
        truth = self.split.relevance
        return {
            "i2t": metrics.rank_queries(self.pairs, truth),
            "t2i": metrics.rank_queries(self.pairs.transposed(), truth.transposed()),
        }

    @functools.cached_property
    def judged(self) -> dict[str, Judged]:
        """`Judged` by direction: every answer with the probability that it is right."""
        return {direction: judged(self, direction) for direction in DIRECTIONS}

    @property
    def uncertainty(self) -> dict[str, np.ndarray | None]:
        """The queries' uncertainties by direction."""
        return {"i2t": self.split.image_uncertainty, "t2i": self.split.caption_uncertainty}

    def ranks_and_uncertainty(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Best ranks and uncertainties of the queries with a positive, `(queries,)` each."""
        ranks = self.ranks[direction]
        return ranks.best_rank[ranks.has_positive], self.uncertainty[direction][ranks.has_positive]

    def estimate(self, statistic: Callable, *columns: ArrayLike) -> metrics.Estimate:
        """`zoo.metrics.bootstrap` with this report's number of resamples and seed."""
        return bootstrap(statistic, *columns, resamples=self.resamples, seed=self.seed)

    def choose(self, count: int) -> np.ndarray:
        """At most `items` of `count` positions, drawn at random, in order."""
        generator = np.random.default_rng([self.seed, count])
        return np.sort(generator.choice(count, min(self.items, count), replace=False))


def of_model(
    model: DualEncoder, split: Split, name: str, ranking: str = "own", **options: Any
) -> ReportedRun:
    """Encodes a split for a report.

    ```python
    run = zoo.report.of_model(model, split, "my run")
    zoo.report.write_report([run], "report")
    ```

    Args:
        model: a `DualEncoder` with a tokenizer.
        split: a `zoo.data.Split`.
        name: of the run in the report.
        ranking: `"own"`, or another of `zoo.similarities.NAMES` to rank by.
        **options: of `ReportedRun`.

    Raises:
        ValueError: if the ranking is unknown.
    """
    similarity = model.similarity if ranking == "own" else similarities.get(ranking, model)
    return ReportedRun(
        name,
        encode(model, split.records, split.source),
        similarity,
        model=model,
        picture=split.picture,
        true_matches=split.true_matches,
        generic=generic_caption(split.records),
        **options,
    )


def generic_caption(records):
    """A caption that is true of a whole data set: "this is a bird." where most captions say so."""
    birds = np.mean(["bird" in caption.lower() for caption in records.captions[:1000]])
    return "this is a bird." if birds > 0.5 else "a picture."
