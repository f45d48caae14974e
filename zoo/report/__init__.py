"""Figures and tables of a run, and its report. Functions take arrays and return a figure."""

import functools
import importlib
import warnings
from typing import Any

from zoo.report.curves import prompts_plot, training_curves
from zoo.report.ellipses import confidence_ellipses, principal_plane
from zoo.report.image_sheets import attention_sheet, attention_sheet_of, overlay
from zoo.report.page import write_report
from zoo.report.plots import draw, draw_run
from zoo.report.reported_run import ReportedRun, of_model
from zoo.report.retrieval_sheets import image_to_text_sheet, text_to_image_sheet
from zoo.report.style import save
from zoo.report.uncertainty_plots import (
    recall_by_uncertainty_plot,
    risk_coverage_plot,
    uncertainty_against_matches,
)

__all__ = [
    "ReportedRun",
    "attention_sheet",
    "attention_sheet_of",
    "confidence_ellipses",
    "draw",
    "draw_run",
    "image_to_text_sheet",
    "of_model",
    "overlay",
    "principal_plane",
    "prompts_plot",
    "recall_by_uncertainty_plot",
    "risk_coverage_plot",
    "save",
    "text_to_image_sheet",
    "training_curves",
    "uncertainty_against_matches",
    "write_report",
]

_FORMER = {  # until the next version
    **dict.fromkeys(("train", "finish", "finish_ensemble", "show"), "zoo.training"),
    **dict.fromkeys(("print_results", "show_results"), "zoo.evaluation"),
}


def __getattr__(name: str) -> Any:
    if name not in _FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = _FORMER[name]
    warnings.warn(f"zoo.report.{name} is {room}.{name} now", DeprecationWarning, stacklevel=2)
    function = getattr(importlib.import_module(room), name)
    drawn = name in ("train", "finish")  # which drew a run's report by themselves
    return functools.partial(function, report=draw_run) if drawn else function
