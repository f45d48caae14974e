"""Evaluation of image–text retrieval: pure functions on arrays, in blocks, ties pessimistic."""

from zoo.metrics.blocks import PairwiseSimilarity
from zoo.metrics.ranks import QueryRanks, rank_queries
from zoo.metrics.relevance import LabelRelevance
from zoo.metrics.retrieval import (
    evaluate_embeddings,
    evaluate_retrieval,
    mean_average_precision_at_r,
    r_precision,
    recall_at_k,
)
from zoo.metrics.uncertainty import recall_by_uncertainty, risk_coverage, spearman

__all__ = [
    "LabelRelevance",
    "PairwiseSimilarity",
    "QueryRanks",
    "evaluate_embeddings",
    "evaluate_retrieval",
    "mean_average_precision_at_r",
    "r_precision",
    "rank_queries",
    "recall_at_k",
    "recall_by_uncertainty",
    "risk_coverage",
    "spearman",
]
