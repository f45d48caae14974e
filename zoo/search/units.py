"""From a similarity to the space that finds its neighbours, and to scores in its own units."""

import dataclasses

import keras
import numpy as np

from zoo import similarities as S

GAUSSIAN, POINT, SET = "a Gaussian", "a point", "a set"
DEFAULT_CANDIDATES = 200


@dataclasses.dataclass(frozen=True)
class Ranking:
    """How one similarity is searched.

    Attributes:
        space: name of the space that finds the neighbours, or the candidates.
        kinds: the kinds of embedding that the similarity takes.
        scorer: from the similarity to the function that makes scores of FAISS' values plus the
            offset, or None where a space can only find candidates and the similarity itself has to
            rank them. A layer's learned numbers are read once: that takes as long as a search.
        ascending: whether the best score is the least.
    """

    space: str
    kinds: tuple
    scorer: object = None
    ascending: bool = False


def _root(value):
    return np.sqrt(np.maximum(value, 0.0))


def _logit(layer, of_value=lambda value: value):
    scale, shift = float(layer.scale), float(layer.shift)
    return lambda value: shift - scale * of_value(value)


def _wasserstein(layer):
    if layer.squared:
        return lambda value: -np.maximum(value, 0.0)
    return lambda value: -_root(value)


def _scaled(layer):
    scale = float(layer.scale)
    return lambda cosine: scale * cosine


def _itself(_):
    return lambda value: value


_GAUSSIAN = (GAUSSIAN,)
_POINTS = (POINT, GAUSSIAN)
_RANKINGS = {
    # Layers: logits, the best is the greatest.
    S.ClosedFormSampledDistance: Ranking("csd", _GAUSSIAN, _logit),
    S.Wasserstein2: Ranking("wasserstein_2", _GAUSSIAN, _wasserstein),
    S.Cosine: Ranking("cosine", _POINTS, _scaled),
    S.EuclideanDistance: Ranking("mean", _POINTS, lambda layer: _logit(layer, _root)),
    S.KLDivergence: Ranking("wasserstein_2", _GAUSSIAN),
    S.ReverseKLDivergence: Ranking("wasserstein_2", _GAUSSIAN),
    S.MinKLDivergence: Ranking("wasserstein_2", _GAUSSIAN),
    S.JeffreysDivergence: Ranking("wasserstein_2", _GAUSSIAN),
    S.Bhattacharyya: Ranking("wasserstein_2", _GAUSSIAN),
    S.ExpectedLikelihood: Ranking("csd", _GAUSSIAN),
    S.AverageL2: Ranking("csd", _GAUSSIAN),
    S.MatchProbability: Ranking("csd", _GAUSSIAN),
    S.MaximumPair: Ranking("elements", (SET,)),
    S.Chamfer: Ranking("elements", (SET,)),
    S.SmoothChamfer: Ranking("elements", (SET,)),
    S.SetMatchProbability: Ranking("elements", (SET,)),
    # Functions: the quantity itself.
    S.closed_form_sampled_distance: Ranking("csd", _GAUSSIAN, _itself, True),
    S.wasserstein_2: Ranking("wasserstein_2", _GAUSSIAN, lambda _: _root, True),
    S.cosine: Ranking("cosine", _POINTS, _itself),
    S.kl_divergence: Ranking("wasserstein_2", _GAUSSIAN, ascending=True),
    S.reverse_kl_divergence: Ranking("wasserstein_2", _GAUSSIAN, ascending=True),
    S.min_kl_divergence: Ranking("wasserstein_2", _GAUSSIAN, ascending=True),
    S.jeffreys_divergence: Ranking("wasserstein_2", _GAUSSIAN, ascending=True),
    S.bhattacharyya_distance: Ranking("wasserstein_2", _GAUSSIAN, ascending=True),
    S.log_expected_likelihood: Ranking("csd", _GAUSSIAN),
    S.maximum_pair: Ranking("elements", (SET,)),
    S.chamfer: Ranking("elements", (SET,)),
    S.smooth_chamfer: Ranking("elements", (SET,)),
}


def resolve(similarity):
    """A similarity layer or function out of what the user gave.

    Raises:
        ValueError: if a name or a function is unknown.
        TypeError: if it is neither a layer, a function nor a name.
    """
    if isinstance(similarity, str):
        return S.get(similarity)
    if isinstance(similarity, S.Similarity):
        return similarity
    if callable(similarity) and similarity in _RANKINGS and not isinstance(similarity, type):
        return similarity
    names = ", ".join(sorted(key.__name__ for key in _RANKINGS))
    raise TypeError(
        "`similarity` must be a layer of zoo.similarities, one of its functions or a name of "
        f"{S.NAMES}; received {similarity!r}. Known: {names}"
    )


def ranking(similarity):
    """The `Ranking` of a resolved similarity, or None for a layer of the user's own."""
    if isinstance(similarity, S.Similarity):
        return _RANKINGS.get(type(similarity))
    return _RANKINGS[similarity]


def name_of(similarity):
    """What to call it in messages and on disk."""
    is_layer = isinstance(similarity, S.Similarity)
    return type(similarity).__name__ if is_layer else similarity.__name__


def to_json(similarity):
    """A similarity with its learned scalars as JSON values."""
    if not isinstance(similarity, S.Similarity):
        return {"function": similarity.__name__}
    return {
        "layer": keras.saving.serialize_keras_object(similarity),
        "weights": [np.asarray(weight).tolist() for weight in similarity.weights],
    }


def from_json(value):
    """The inverse of `to_json`."""
    if "function" in value:
        return getattr(S, value["function"])
    layer = keras.saving.deserialize_keras_object(value["layer"])
    layer.set_weights([np.asarray(weight, np.float32) for weight in value["weights"]])
    return layer
