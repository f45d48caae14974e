"""Sections of a report: the run that they read, and the numbers and figures that they give."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from zoo import metrics, similarities
from zoo.confidence import Probes
from zoo.data.records import Records
from zoo.data.records.sources import Split
from zoo.evaluation.retrieval import EncodedSplit, encode
from zoo.metrics.statistics import RESAMPLES, Estimate, bootstrap
from zoo.models import DualEncoder
from zoo.report.judged import Judged, judged
from zoo.report.style import DIRECTIONS


class Number(NamedTuple):
    """A line of a section's table.

    Attributes:
        label: what the number is.
        estimate: its `Estimate`.
        unit: of the number.
        form: format specification of the number.
        of: what the bootstrap resamples.
        chance: the value of a random ranking, or None.
    """

    label: str
    estimate: Estimate
    unit: str = ""
    form: str = ".1f"
    of: str = "queries"
    chance: float | None = None

    @property
    def text(self):
        """Value and interval with the unit."""
        return f"{self.estimate.text(self.form)} {self.unit}".strip()


class Table(NamedTuple):
    """A table of texts."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Found(NamedTuple):
    """One item that a question finds.

    Attributes:
        picture: pixels `(height, width, 3)`, 0 … 255, or None.
        text: in place of a picture.
        right: whether it matches.
        fits: the probability that it fits, or None.
    """

    picture: np.ndarray | None
    text: str
    right: bool
    fits: float | None = None


class Example(NamedTuple):
    """A question with its first answers, judged as `zoo.Retriever` judges.

    Attributes:
        question: the caption.
        verdict, reason: of the `zoo.retriever.Judgement`.
        probability: that the first result fits, or None.
        rank: of the first right answer.
        found: the `Found`, best first.
    """

    question: str
    verdict: str
    probability: float | None
    reason: str
    rank: int
    found: tuple[Found, ...]


@dataclasses.dataclass(frozen=True)
class Section:
    """The answer to one question about a run.

    Attributes:
        name: of its files and its place in the page, letters and underscores.
        title: the heading.
        text: what was done, and how to read the figure.
        numbers: `Number`s.
        figures: dict from a description to a matplotlib figure.
        tables: `Table`s.
        verdicts: sentences that stand out above the text.
        examples: `Example`s.
    """

    name: str
    title: str
    text: str
    numbers: tuple[Number, ...] = ()
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    verdicts: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()

    def as_dict(self):
        """The numbers as JSON values, by label."""
        return {number.label: _json_of(number) for number in self.numbers}


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


def of_error(estimate):
    """The `Estimate` of a calibration error, its interval about the value.

    A resample holds some queries twice, which adds to how far bins are off: an interval of
    resamples leans upwards and may leave the value out. Its width is kept.
    """
    width = (estimate.high - estimate.low) / 2
    ends = max(0.0, estimate.value - width), estimate.value + width
    return estimate._replace(low=ends[0], high=ends[1])


def by_direction(function):
    """The items of `function(direction, words)` for both directions, as a tuple."""
    return tuple(
        item for direction, words in DIRECTIONS.items() for item in function(direction, words)
    )


def _json_of(number):
    values = dict(zip(Estimate._fields, number.estimate, strict=True))
    values |= {"unit": number.unit, "of": number.of}
    return values if number.chance is None else values | {"chance": number.chance}
