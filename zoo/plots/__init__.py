"""Figures of the papers and of runs, and the report on a run. Functions return a figure."""

from zoo.plots.ellipses import confidence_ellipses, principal_plane
from zoo.plots.report import write_report
from zoo.plots.retrieval_sheets import (
    attention_sheet,
    attention_sheet_of,
    image_to_text_sheet,
    overlay,
    text_to_image_sheet,
)
from zoo.plots.run_figures import draw, draw_run, prompts_plot, training_curves
from zoo.plots.style import save
from zoo.plots.uncertainty_plots import (
    recall_by_uncertainty_plot,
    risk_coverage_plot,
    uncertainty_against_matches,
)

__all__ = [
    "attention_sheet",
    "attention_sheet_of",
    "confidence_ellipses",
    "draw",
    "draw_run",
    "image_to_text_sheet",
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
