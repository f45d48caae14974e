import numpy as np
import pytest

import oracles
from layer_checks import check_layer
from zoo import similarities as S

RNG = np.random.default_rng(6)
GAUSSIANS = {
    "images": oracles.random_gaussians(RNG, 4, 6),
    "captions": oracles.random_gaussians(RNG, 4, 6),
}
SETS = {
    "images": oracles.random_sets(RNG, 4, 3, 6, masked=True),
    "captions": oracles.random_sets(RNG, 4, 2, 6, masked=True),
}
ON_GAUSSIANS = [
    (S.ClosedFormSampledDistance, {"scale": 0.3, "shift": 2.0}),
    (S.Wasserstein2, {}),
    (S.KLDivergence, {}),
    (S.ReverseKLDivergence, {}),
    (S.MinKLDivergence, {}),
    (S.JeffreysDivergence, {}),
    (S.ExpectedLikelihood, {}),
    (S.Bhattacharyya, {}),
    (S.MatchProbability, {"scale": 2.0, "shift": 5.0}),
    (S.MatchProbability, {"scale": 2.0, "shift": 5.0, "method": "moment_matched"}),
    (S.AverageL2, {"num_samples": 3, "seed": 4}),
    (S.Cosine, {}),
    (S.Cosine, {"scale": 10.0, "learn_scale": True}),
]
ON_SETS = [
    (S.MaximumPair, {}),
    (S.Chamfer, {}),
    (S.SmoothChamfer, {"alpha": 8.0}),
    (S.SetMatchProbability, {"scale": 2.0, "shift": 3.0}),
]
FUNCTIONS = [
    S.closed_form_sampled_distance,
    S.wasserstein_2,
    S.kl_divergence,
    S.reverse_kl_divergence,
    S.min_kl_divergence,
    S.jeffreys_divergence,
    S.log_expected_likelihood,
    S.bhattacharyya_distance,
    lambda i, c: S.moment_matched_match_probability(i, c, 5.0, 5.0),
    S.MatchProbability(5.0, 5.0),
]


@pytest.mark.parametrize(("cls", "config"), ON_GAUSSIANS)
def test_gaussian_layer(cls, config):
    # bfloat16 inputs of the mixed-precision check are rounded before the layer sees them
    check_layer(cls, config, GAUSSIANS, (4, 4), atol=1e-4, mixed_atol=None)


@pytest.mark.parametrize(("cls", "config"), ON_SETS)
def test_set_layer(cls, config):
    check_layer(cls, config, SETS, (4, 4), mixed_atol=None)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_gaussian_is_wanted(function):
    good = GAUSSIANS["captions"]
    with pytest.raises(ValueError, match=r"`images` must be a Gaussian .* received a point"):
        function({"mean": GAUSSIANS["images"]["mean"]}, good)
    with pytest.raises(ValueError, match=r"`captions` must be a Gaussian .* received a point"):
        function(good, {"mean": good["mean"]})


def test_dimensions_must_agree():
    wide = oracles.random_gaussians(RNG, 3, 7)
    message = r"same last dimension; received 6 \(images \(4, 6\)\) and 7 \(captions \(3, 7\)\)"
    for function in [*FUNCTIONS[:-1], S.cosine, S.KLDivergence()]:
        with pytest.raises(ValueError, match=message):
            function(GAUSSIANS["images"], wide)
    sets = oracles.random_sets(RNG, 3, 2, 7)
    for function in (S.maximum_pair, S.chamfer, S.smooth_chamfer, S.average_l2):
        with pytest.raises(ValueError, match=r"received 6 .* and 7"):
            function(SETS["images"], sets)
