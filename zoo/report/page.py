"""The report: all sections of its runs on one page with everything in it, and its numbers."""

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zoo.files.atomic import atomic, write_text
from zoo.report import (
    calibration,
    confidence_section,
    gaussian_shape,
    inputs,
    opening,
    retrieval,
    set_algebra,
    uncertainty_quality,
)
from zoo.report.markup import drawn, page
from zoo.report.reported_run import ReportedRun
from zoo.report.section import Section

PAGE, NUMBERS = "report.html", "report.json"
OF_ALL = {
    "opening": opening.section,
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
    """Yields the `Section`s that apply to a run, in the order of the page; tells of each first."""
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


def _drawn(sections, out, prefix):
    """Pairs of a section and its figures as PNG; those on white are also written as files."""
    pairs = []
    for section in sections:
        pictures = {}
        for number, (text, figure) in enumerate(section.figures.items()):
            pictures[text] = drawn(figure)
            which = f"_{number + 1}" if len(section.figures) > 1 else ""
            with atomic(out / f"{prefix}{section.name}{which}.png") as temporary:
                temporary.write_bytes(pictures[text][0])
        pairs.append((section, pictures))
    return pairs


def _plain(name):
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _without_nan(value):
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
