"""Similarities by name, for ranking at test time."""

from zoo.similarities.divergence import (
    JeffreysDivergence,
    KLDivergence,
    MinKLDivergence,
    ReverseKLDivergence,
)
from zoo.similarities.euclidean import EuclideanDistance
from zoo.similarities.gaussian import ClosedFormSampledDistance, Wasserstein2
from zoo.similarities.monte_carlo import AverageL2, MatchProbability
from zoo.similarities.overlap import Bhattacharyya, ExpectedLikelihood
from zoo.similarities.points import Cosine
from zoo.similarities.set_probability import SetMatchProbability
from zoo.similarities.sets import Chamfer, MaximumPair, SmoothChamfer
from zoo.similarities.squared import SquaredEuclidean, SquaredWasserstein2

_CLASSES = {
    "average_l2": AverageL2,
    "bhattacharyya": Bhattacharyya,
    "chamfer": Chamfer,
    "cosine": Cosine,
    "csd": ClosedFormSampledDistance,
    "elk": ExpectedLikelihood,
    "jeffreys": JeffreysDivergence,
    "kl": KLDivergence,
    "match_probability": MatchProbability,
    "maximum_pair": MaximumPair,
    "mean": EuclideanDistance,
    "min_kl": MinKLDivergence,
    "reverse_kl": ReverseKLDivergence,
    "set_match_probability": SetMatchProbability,
    "smooth_chamfer": SmoothChamfer,
    "wasserstein_2": Wasserstein2,
}
NAMES = tuple(_CLASSES)
# A square ranks as its root does.
_SQUARES = {SquaredEuclidean: "mean", SquaredWasserstein2: "wasserstein_2"}


def get(name, model=None):
    """A similarity by name: the rows of PCME's table E.1 and PCME++'s table C.4.

    Args:
        name: one of `zoo.similarities.NAMES`; `"mean"` is the distance of the means alone.
        model: a `DualEncoder`. When its own similarity is of this kind it is returned, with its
            learned scale and shift, on which the ranking by match probability depends.

    Raises:
        ValueError: if the name is unknown.
    """
    if name not in _CLASSES:
        raise ValueError(f"`name` must be one of {NAMES}; received {name!r}")
    similarity_class = _CLASSES[name]
    own = getattr(model, "similarity", None)
    if type(own) is similarity_class:
        return own
    if similarity_class is MatchProbability:
        learned = hasattr(own, "scale") and hasattr(own, "shift")
        return MatchProbability(*((float(own.scale), float(own.shift)) if learned else (10, 10)))
    return similarity_class()


def name_of(similarity):
    """The name under which `get` gives the ranking of a similarity layer.

    One that has no name of its own, such as cross-attention, which needs its weights, is called
    by its layer's name.
    """
    names = {cls: name for name, cls in _CLASSES.items()} | _SQUARES
    return names.get(type(similarity), similarity.name)
