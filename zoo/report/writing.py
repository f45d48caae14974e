"""Writes a report: the page, the figures and the numbers."""

import json
import math
from pathlib import Path

from zoo.files.atomic import atomic, write_text
from zoo.report import comparison
from zoo.report.page import page, png
from zoo.report.sections import sections_of

PAGE, NUMBERS = "report.html", "report.json"


def write_report(runs, out, title=None, tell=lambda name: None):
    """Writes report.html, a PNG for each figure, and report.json with all numbers.

    Args:
        runs: one `ReportedRun`, or several to set side by side.
        out: the folder.
        title: of the page; by default the names of the runs.
        tell: function that is told what is being made.

    Returns:
        The path of the page.

    Raises:
        InputError: if something cannot be written.
    """
    out = Path(out)
    parts, numbers = {}, {}
    names = [run.name for run in runs]
    if len(runs) > 1:
        tell("comparison")
        parts["Side by side"] = _drawn([comparison.section(runs)], out, "")
    for run in runs:
        prefix = f"{_plain(run.name)}_" if len(runs) > 1 else ""
        parts[run.name] = _drawn(sections_of(run, tell), out, prefix)
    for name, sections in parts.items():
        numbers[name] = {section.name: section.as_dict() for section, _ in sections}
    foot = (
        f"Intervals are 95 % percentile bootstrap intervals over queries, {runs[0].resamples} "
        f"resamples, seed {runs[0].seed}. Several captions of an image are taken for independent "
        "queries, which makes intervals of captions too narrow by some."
    )
    text = page(title or f"Report: {', '.join(names)}", parts, foot)
    write_text(out / PAGE, text)
    write_text(out / NUMBERS, json.dumps(_without_nan(numbers), indent=2) + "\n")
    return out / PAGE


def _drawn(sections, out, prefix):
    """Sections with their figures as PNG, which are also written as files."""
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
