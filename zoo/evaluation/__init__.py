"""A model on a split: encode, rank, retrieve, and what its uncertainties tell."""

from zoo.evaluation.callbacks import SemanticEvaluation
from zoo.evaluation.retrieval import EncodedSplit, encode, evaluate, spearman_of_matches
from zoo.evaluation.sets import encode_sets, measure_sets, nearest_captions

__all__ = [
    "EncodedSplit",
    "SemanticEvaluation",
    "encode",
    "encode_sets",
    "evaluate",
    "measure_sets",
    "nearest_captions",
    "spearman_of_matches",
]
