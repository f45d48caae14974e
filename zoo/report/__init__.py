"""Figures and tables of a run. Functions take arrays and return a figure; `save` writes it."""

from zoo.report.ambiguity import uncertainty_against_matches
from zoo.report.attention_maps import attention_sheet, attention_sheet_of, overlay
from zoo.report.crop_sheet import crop_sheet
from zoo.report.curves_over_seeds import curves_over_seeds
from zoo.report.ellipses import confidence_ellipses, principal_plane
from zoo.report.learning_curves import training_curves
from zoo.report.reported_run import ReportedRun, of_model
from zoo.report.results_table import print_results
from zoo.report.retrieval_sheet import image_to_text_sheet, text_to_image_sheet
from zoo.report.risk_coverage_plot import risk_coverage_plot
from zoo.report.run import finish, finish_ensemble, show, show_results
from zoo.report.run_figures import draw
from zoo.report.selection_accuracy import selection_accuracy_plot
from zoo.report.style import save
from zoo.report.uncertainty_bins import recall_by_uncertainty_plot
from zoo.report.writing import write_report

__all__ = [
    "ReportedRun",
    "attention_sheet",
    "attention_sheet_of",
    "confidence_ellipses",
    "crop_sheet",
    "curves_over_seeds",
    "draw",
    "finish",
    "finish_ensemble",
    "image_to_text_sheet",
    "of_model",
    "overlay",
    "principal_plane",
    "print_results",
    "recall_by_uncertainty_plot",
    "risk_coverage_plot",
    "save",
    "selection_accuracy_plot",
    "show",
    "show_results",
    "text_to_image_sheet",
    "training_curves",
    "uncertainty_against_matches",
    "write_report",
]
