"""Metrics of image–text retrieval and of uncertainties: pure functions on arrays."""

from zoo.metrics.annotations import (
    read_ids,
    read_instance_labels,
    read_matches,
    relevance_of_matches,
)
from zoo.metrics.blocks import MeanSimilarity, PairwiseSimilarity
from zoo.metrics.cider_factors import CiderFactors, cider, cider_factors
from zoo.metrics.coco import check_coco_ids, coco_benchmark
from zoo.metrics.plausible_match import plausible_match_r_precision
from zoo.metrics.ranks import LabelRelevance, QueryRanks, rank_queries
from zoo.metrics.retrieval import (
    chance,
    evaluate_retrieval,
    mean_average_precision_at_r,
    r_precision,
    recall_at_k,
)
from zoo.metrics.semantic_precision import average_semantic_precision
from zoo.metrics.statistics import Estimate, bootstrap, spearman, wilson_interval
from zoo.metrics.uncertainty import (
    INFORMATIVE,
    Verdict,
    kind_of_gain,
    normalised_aurc,
    recall_by_uncertainty,
    recall_in_bins,
    risk_coverage,
    spearman_of_bins,
    uncertainty_verdict,
)

__all__ = [
    "INFORMATIVE",
    "CiderFactors",
    "Estimate",
    "LabelRelevance",
    "MeanSimilarity",
    "PairwiseSimilarity",
    "QueryRanks",
    "Verdict",
    "average_semantic_precision",
    "bootstrap",
    "chance",
    "check_coco_ids",
    "cider",
    "cider_factors",
    "coco_benchmark",
    "evaluate_retrieval",
    "kind_of_gain",
    "mean_average_precision_at_r",
    "normalised_aurc",
    "plausible_match_r_precision",
    "r_precision",
    "rank_queries",
    "read_ids",
    "read_instance_labels",
    "read_matches",
    "recall_at_k",
    "recall_by_uncertainty",
    "recall_in_bins",
    "relevance_of_matches",
    "risk_coverage",
    "spearman",
    "spearman_of_bins",
    "uncertainty_verdict",
    "wilson_interval",
]
