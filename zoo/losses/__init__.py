"""Losses over `(matches, logits)`, and the auxiliary terms on embeddings that join them."""

from zoo.losses.ambiguity import Ambiguity
from zoo.losses.auxiliary import Auxiliary
from zoo.losses.auxiliary_ranking import AuxiliaryRanking
from zoo.losses.average_precision import SmoothAveragePrecision
from zoo.losses.base import MatrixLoss
from zoo.losses.captioning import Captioning
from zoo.losses.contrastive import InfoNCE
from zoo.losses.inclusion import Inclusion, inclusion
from zoo.losses.matching import MatchingCrossentropy, with_pseudo_positives
from zoo.losses.maximum_mean_discrepancy import MaximumMeanDiscrepancy, maximum_mean_discrepancy
from zoo.losses.mutual_likelihood import MutualLikelihood, mutual_likelihood
from zoo.losses.ranking import TripletRanking
from zoo.losses.semantic_precision import SemanticPrecision
from zoo.losses.slot_diversity import (
    Diversity,
    OrthogonalDiversity,
    diversity,
    orthogonal_diversity,
)
from zoo.losses.spread import Uniformity, uniformity
from zoo.losses.standard_normal import KLRegularizer, kl_to_standard_normal

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
