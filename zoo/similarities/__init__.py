"""Similarities: two batches of embeddings in, an `(images, captions)` matrix out.

Functions give the mathematical quantity, layers the matching logits (higher is better). What other
rooms need to know of a similarity stands on its class, see `Similarity`; importing the class below
gives it its name.
"""

from halo_search.index.similarities import NAMES
from zoo.similarities.base import AverageSimilarity, Similarity
from zoo.similarities.by_name import get, name_of, names
from zoo.similarities.cross_attention import SimilarityFiltration, SimilarityReasoning
from zoo.similarities.divergence import (
    Bhattacharyya,
    ExpectedLikelihood,
    JeffreysDivergence,
    KLDivergence,
    MinKLDivergence,
    ReverseKLDivergence,
    bhattacharyya_distance,
    jeffreys_divergence,
    kl_divergence,
    log_expected_likelihood,
    min_kl_divergence,
    reverse_kl_divergence,
)
from zoo.similarities.gaussian import (
    ClosedFormSampledDistance,
    EuclideanDistance,
    SquaredEuclidean,
    SquaredWasserstein2,
    Wasserstein2,
    closed_form_sampled_distance,
    wasserstein_2,
)
from zoo.similarities.points import Cosine, CosineLogit, cosine
from zoo.similarities.sampled import (
    AverageL2,
    MatchProbability,
    average_l2,
    match_probability,
    moment_matched_match_probability,
    sample,
)
from zoo.similarities.sets import (
    Chamfer,
    MaximumPair,
    SetMatchProbability,
    SmoothChamfer,
    chamfer,
    maximum_pair,
    smooth_chamfer,
)

__all__ = [
    "NAMES",
    "AverageL2",
    "AverageSimilarity",
    "Bhattacharyya",
    "Chamfer",
    "ClosedFormSampledDistance",
    "Cosine",
    "CosineLogit",
    "EuclideanDistance",
    "ExpectedLikelihood",
    "JeffreysDivergence",
    "KLDivergence",
    "MatchProbability",
    "MaximumPair",
    "MinKLDivergence",
    "ReverseKLDivergence",
    "SetMatchProbability",
    "Similarity",
    "SimilarityFiltration",
    "SimilarityReasoning",
    "SmoothChamfer",
    "SquaredEuclidean",
    "SquaredWasserstein2",
    "Wasserstein2",
    "average_l2",
    "bhattacharyya_distance",
    "chamfer",
    "closed_form_sampled_distance",
    "cosine",
    "get",
    "jeffreys_divergence",
    "kl_divergence",
    "log_expected_likelihood",
    "match_probability",
    "maximum_pair",
    "min_kl_divergence",
    "moment_matched_match_probability",
    "name_of",
    "names",
    "reverse_kl_divergence",
    "sample",
    "smooth_chamfer",
    "wasserstein_2",
]
