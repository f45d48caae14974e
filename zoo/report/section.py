"""A section of a report: one question, its figures, and its numbers with intervals."""

import dataclasses
from typing import Any, NamedTuple

from zoo.report.bootstrap import Estimate


class Number(NamedTuple):
    """A line of a section's table: what it is, what it came to, and of what."""

    label: str
    estimate: Estimate
    unit: str = ""
    form: str = ".1f"
    of: str = "queries"

    @property
    def text(self):
        """Value and interval with the unit."""
        return f"{self.estimate.text(self.form)} {self.unit}".strip()


class Table(NamedTuple):
    """A table of texts."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Section:
    """What one module of `zoo.report` has to say about a run.

    Attributes:
        name: of its files and its place in the page, letters and underscores.
        title: the heading.
        text: what was done, and how to read the figure.
        numbers: `Number`s.
        figures: matplotlib figures by the text that says what they show.
        tables: `Table`s.
    """

    name: str
    title: str
    text: str
    numbers: tuple[Number, ...] = ()
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    tables: tuple[Table, ...] = ()

    def as_dict(self):
        """The numbers as JSON values, by label."""
        return {
            number.label: {
                **dict(zip(Estimate._fields, number.estimate, strict=True)),
                "unit": number.unit,
                "of": number.of,
            }
            for number in self.numbers
        }
