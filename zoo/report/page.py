"""The report: all sections of its runs, one HTML page with everything in it, and its numbers."""

import base64
import html
import io
import itertools
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

from zoo.files.atomic import atomic, write_text
from zoo.report import (
    calibration,
    confidence_section,
    gaussian_shape,
    inputs,
    retrieval,
    set_algebra,
    style,
    uncertainty_quality,
)
from zoo.report.section import ReportedRun, Section

PAGE, NUMBERS = "report.html", "report.json"
OF_ALL = {
    "retrieval": retrieval.section,
    "confidence": confidence_section.section,
    "calibration": calibration.section,
}
OF_UNCERTAINTY = {
    "recall by uncertainty": uncertainty_quality.recall_section,
    "risk and coverage": uncertainty_quality.risk_section,
    "true ambiguity": uncertainty_quality.ambiguity_section,
    "erased pixels and lost words": inputs.corruption_section,
    "ellipses": gaussian_shape.ellipses_section,
    "set algebra": set_algebra.section,
    "isotropy": gaussian_shape.isotropy_section,
    "words": inputs.words_section,
    "extremes": uncertainty_quality.extremes_section,
}
NO_UNCERTAINTY = (
    "Not both sides of this run have an uncertainty: points and tokens have none. A system with a "
    "variance, or one of sets, has more sections here."
)
FEW = "The split has too few images or captions for bins of uncertainty: ten of each are needed."
_FEWEST = 10
DPI = 110
_CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1rem;
  color: #1b1b1b; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
p { max-width: 46rem; } nav a { margin-right: 1rem; } a { color: #0058a3; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .92rem; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
"""


def write_report(
    runs: Sequence[ReportedRun],
    out: str | os.PathLike,
    title: str | None = None,
    tell: Callable[[str], Any] = lambda name: None,
) -> Path:
    """Writes report.html, a PNG for each figure, and report.json with all numbers.

    ```python
    path = zoo.report.write_report([run], "report")  # report/report.html
    ```

    Args:
        runs: one `ReportedRun`, or several to set side by side.
        out: the folder.
        title: of the page; by default the names of the runs.
        tell: function that is called with the name of each section before it is made.

    Returns:
        The path of the page.

    Raises:
        InputError: if a file cannot be written.
    """
    out = Path(out)
    parts, numbers = {}, {}
    names = [run.name for run in runs]
    if len(runs) > 1:
        tell("comparison")
        parts["Side by side"] = _drawn([retrieval.comparison_section(runs)], out, "")
    for run in runs:
        prefix = f"{_plain(run.name)}_" if len(runs) > 1 else ""
        parts[run.name] = _drawn(sections_of(run, tell), out, prefix)
    for name, sections in parts.items():
        numbers[name] = {section.name: section.as_dict() for section, _ in sections}
    foot = (
        f"Intervals are 95 % percentile bootstrap intervals over queries, {runs[0].resamples} "
        f"resamples, seed {runs[0].seed}. Several captions of an image are taken for independent "
        "queries, which makes intervals of captions somewhat too narrow."
    )
    text = page(title or f"Report: {', '.join(names)}", parts, foot)
    write_text(out / PAGE, text)
    write_text(out / NUMBERS, json.dumps(_without_nan(numbers), indent=2) + "\n")
    return out / PAGE


def sections_of(run, tell=lambda name: None):
    """The sections that apply to a run, in the order of the page.

    Args:
        run: a `ReportedRun`.
        tell: as in `write_report`.

    Yields:
        `Section`s.
    """
    few = min(run.records.num_images, run.records.num_captions) < _FEWEST
    makers = {**OF_ALL, **(OF_UNCERTAINTY if run.is_uncertain and not few else {})}
    for name, make in makers.items():
        tell(name)
        section = make(run)
        if section is not None:
            yield section
    if not run.is_uncertain or few:
        text = FEW if run.is_uncertain else NO_UNCERTAINTY
        yield Section("no_uncertainty", "Uncertainty", text)


def page(title, runs, foot):
    """The HTML text of a report.

    Args:
        title: of the page.
        runs: by the name of each part, which is a run or the comparison, its `Section`s with their
            figures already as PNG: pairs `(section, {text: bytes})`.
        foot: sentences about how numbers were made.

    Returns:
        A string without any reference outside itself.
    """
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{_CSS}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
    ]
    links = []
    body = []
    for part, (name, sections) in enumerate(runs.items()):
        several = len(runs) > 1
        if several:
            body.append(f'<h1 id="part-{part}">{html.escape(name)}</h1>')
            links.append(f'<a href="#part-{part}">{html.escape(name)}</a>')
        for section, pictures in sections:
            place = f"{part}-{section.name}"
            if not several:
                links.append(f'<a href="#{place}">{html.escape(section.title)}</a>')
            body += _section(section, pictures, place)
    parts.append(f'<nav aria-label="Contents">{" ".join(links)}</nav>')
    parts += body
    parts.append(f"<hr><p>{html.escape(foot)}</p></body></html>")
    return "\n".join(parts) + "\n"


def png(figure):
    """A figure as PNG bytes."""
    stream = io.BytesIO()
    with matplotlib.rc_context(style.STYLE):
        figure.savefig(stream, format="png", dpi=DPI)
    return stream.getvalue()


def _drawn(sections, out, prefix):
    """Pairs of a section and its figures as PNG, which are also written as files."""
    drawn = []
    for section in sections:
        pictures = {}
        for number, (text, figure) in enumerate(section.figures.items()):
            pictures[text] = png(figure)
            which = f"_{number + 1}" if len(section.figures) > 1 else ""
            with atomic(out / f"{prefix}{section.name}{which}.png") as temporary:
                temporary.write_bytes(pictures[text])
        drawn.append((section, pictures))
    return drawn


def _plain(name):
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _without_nan(value):
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _section(section, pictures, place):
    yield f'<section id="{place}"><h2>{html.escape(section.title)}</h2>'
    for verdict in section.verdicts:
        yield f"<p><strong>{html.escape(verdict)}</strong></p>"
    yield f"<p>{html.escape(section.text)}</p>"
    for text, contents in pictures.items():
        words = html.escape(text)
        data = base64.b64encode(contents).decode("ascii")
        yield (
            f'<figure><img alt="{words}" src="data:image/png;base64,{data}">'
            f"<figcaption>{words}</figcaption></figure>"
        )
    if section.numbers:
        yield _table("", *_number_rows(section.numbers))
    for table in section.tables:
        yield _table(table.title, table.header, table.rows)
    yield "</section>"


def _number_rows(numbers):
    """Header and rows of a table of `Number`s, with a column of chance where one knows it."""
    with_chance = any(number.chance is not None for number in numbers)
    rows = []
    for (is_zero, unit, of), group in itertools.groupby(numbers, _zero_unit_and_of):
        group = list(group)
        if is_zero:  # one row for all
            labels = "; ".join(number.label for number in group)
            group = [group[0]._replace(label=labels)]
        for number in group:
            chance = "" if number.chance is None else f"{number.chance:{number.form}} {unit}"
            count = f"{number.estimate.n:,} {of}"
            rows.append((number.label, number.text, *([chance] if with_chance else []), count))
    chance = ["chance"] if with_chance else []
    return ("number", "value [95 % interval]", *chance, "n"), rows


def _zero_unit_and_of(number):
    is_zero = number.chance is None and not any(number.estimate[:3])
    return is_zero, number.unit, number.of


def _table(title, header, rows):
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    lines = [f'<div class="wide"><table>{caption}']
    lines.append(f"<thead><tr>{head}</tr></thead><tbody>")
    for first, *rest in rows:
        cells = "".join(f'<td class="number">{html.escape(cell)}</td>' for cell in rest)
        lines.append(f"<tr><td>{html.escape(first)}</td>{cells}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)
