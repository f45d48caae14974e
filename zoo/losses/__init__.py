"""Losses over `(matches, logits)`, and the auxiliary terms on embeddings that join them."""

from zoo.losses.average_precision import SemanticPrecision, SmoothAveragePrecision
from zoo.losses.base import Auxiliary, MatrixLoss
from zoo.losses.captioning import Captioning
from zoo.losses.gaussian_terms import (
    Ambiguity,
    Inclusion,
    KLRegularizer,
    MutualLikelihood,
    inclusion,
    kl_to_standard_normal,
    mutual_likelihood,
)
from zoo.losses.matching import InfoNCE, MatchingCrossentropy, with_pseudo_positives
from zoo.losses.ranking import AuxiliaryRanking, TripletRanking
from zoo.losses.spread import (
    Diversity,
    MaximumMeanDiscrepancy,
    OrthogonalDiversity,
    Uniformity,
    diversity,
    maximum_mean_discrepancy,
    orthogonal_diversity,
    uniformity,
)

__all__ = [
    "Ambiguity",
    "Auxiliary",
    "AuxiliaryRanking",
    "Captioning",
    "Diversity",
    "Inclusion",
    "InfoNCE",
    "KLRegularizer",
    "MatchingCrossentropy",
    "MatrixLoss",
    "MaximumMeanDiscrepancy",
    "MutualLikelihood",
    "OrthogonalDiversity",
    "SemanticPrecision",
    "SmoothAveragePrecision",
    "TripletRanking",
    "Uniformity",
    "diversity",
    "inclusion",
    "kl_to_standard_normal",
    "maximum_mean_discrepancy",
    "mutual_likelihood",
    "orthogonal_diversity",
    "uniformity",
    "with_pseudo_positives",
]
