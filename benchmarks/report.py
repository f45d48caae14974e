"""What a benchmark returns: a table of figures with the seed and the machine beside them."""

import dataclasses
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import timing
from halo_search.files.atomic import write_text
from halo_search.files.written import Written


@dataclasses.dataclass
class Report:
    """One table. `main()` of a benchmark returns one of them or a list of them.

    Attributes:
        title: what is measured, with the sizes.
        seed: of the random inputs.
        rows: dicts from column to value; a missing value is left blank.
        notes: what a reader must know to read the figures rightly.
    """

    title: str
    seed: int
    rows: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    def add(self, **row):
        self.rows.append(row)

    def print(self, console=None):
        console = console or Console()
        columns = list(dict.fromkeys(column for row in self.rows for column in row))
        table = Table(title=self.title, title_justify="left")
        for column in columns:
            number = all(isinstance(row.get(column, 0), (int, float)) for row in self.rows)
            table.add_column(column.replace("_", " "), justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*(_format(row.get(column, "")) for column in columns))
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", style="dim", markup=False)
        console.print(f"  seed {self.seed}\n", style="dim")

    def as_dict(self):
        return {**dataclasses.asdict(self), "hardware": timing.hardware()}


def hardware_line():
    """The machine and versions in one line."""
    facts = dict(timing.hardware())
    machine = f"{facts.pop('cpus')} × {facts.pop('processor')}"
    return machine + " · " + ", ".join(f"{name} {value}" for name, value in facts.items())


def save(reports, name, folder):
    """Writes the reports of the benchmark `name` to `folder/name.json`, atomically."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    Written(folder).claim(path.name)
    write_text(path, json.dumps([report.as_dict() for report in reports], indent=2))
    return path


def _format(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    magnitude = abs(value)
    if value == 0 or 0.001 <= magnitude < 1e5:
        return f"{value:,.0f}" if magnitude >= 100 else f"{value:.3g}"
    return f"{value:.2e}"
