"""Evaluates a model on a split: encodes it, ranks, and measures retrieval and uncertainty."""

from zoo.evaluation.calibration import Answers, calibrate_run, calibrated
from zoo.evaluation.printing import print_results, show_results
from zoo.evaluation.probes import general_probes, make_probes, probes_of_captioned
from zoo.evaluation.retrieval import (
    EncodedSplit,
    encode,
    evaluate,
    evaluate_folder,
    measure,
)
from zoo.evaluation.runs import data_of, ensemble, open_run, probes_of
from zoo.evaluation.sets import encode_sets, measure_sets, nearest_captions
from zoo.presets.folders import card_of, resizing_of

__all__ = [
    "Answers",
    "EncodedSplit",
    "calibrate_run",
    "calibrated",
    "card_of",
    "data_of",
    "encode",
    "encode_sets",
    "ensemble",
    "evaluate",
    "evaluate_folder",
    "general_probes",
    "make_probes",
    "measure",
    "measure_sets",
    "nearest_captions",
    "open_run",
    "print_results",
    "probes_of",
    "probes_of_captioned",
    "resizing_of",
    "show_results",
]
