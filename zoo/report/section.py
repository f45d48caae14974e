"""Sections of a report: the numbers, tables, figures and examples that they give."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from zoo.metrics.statistics import Estimate
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


def of_error(estimate):
    """The `Estimate` of a calibration error, its interval about the value, with its width.

    A resample holds some queries twice, which adds to how far bins are off: an interval of
    resamples leans upwards and may leave the value out.
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
