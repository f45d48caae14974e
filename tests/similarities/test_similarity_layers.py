"""Every layer: running, saving, symbolic use; and what wrong input is told."""

import keras
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


def test_config_holds_every_argument():
    configs = {
        S.ClosedFormSampledDistance: {"scale": 2.0, "shift": 3.0},
        S.Wasserstein2: {"squared": True},
        S.Cosine: {"scale": 2.0, "learn_scale": True, "max_scale": 50.0},
        S.SmoothChamfer: {"alpha": 3.0},
        S.MatchProbability: {
            "scale": 2.0,
            "shift": 3.0,
            "num_samples": 4,
            "seed": 9,
            "method": "moment_matched",
        },
    }
    for cls, config in configs.items():
        stored = cls(**config).get_config()
        assert {k: stored[k] for k in config} == config


def test_learned_scale_and_shift_survive_saving(tmp_path):
    layer = S.MatchProbability(scale=5.0, shift=5.0)
    inputs = {
        side: {k: keras.Input((6,), name=f"{side}_{k}") for k in ("mean", "log_variance")}
        for side in ("images", "captions")
    }
    model = keras.Model(inputs, layer(inputs["images"], inputs["captions"]))
    layer.scale.assign(7.5)
    layer.shift.assign(-1.25)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(GAUSSIANS), model(GAUSSIANS))
    (reloaded,) = (x for x in loaded.layers if isinstance(x, S.MatchProbability))
    assert (float(reloaded.scale), float(reloaded.shift)) == (7.5, -1.25)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_symbolic_gaussians(function):
    images, captions = (
        {k: keras.KerasTensor((n, 6), name=k) for k in ("mean", "log_variance")} for n in (None, 3)
    )
    assert function(images, captions).shape in [(None, 3), (None, None)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_gaussian_is_wanted(function):
    good = GAUSSIANS["captions"]
    with pytest.raises(ValueError, match=r"`images` must be a Gaussian .* received a point"):
        function({"mean": GAUSSIANS["images"]["mean"]}, good)
    with pytest.raises(ValueError, match=r"`captions` must be a Gaussian .* received a point"):
        function(good, {"mean": good["mean"]})


@pytest.mark.parametrize("function", FUNCTIONS[:-1])
def test_a_set_is_not_a_gaussian(function):
    with pytest.raises(ValueError, match=r"`captions` must be a Gaussian .* received a set"):
        function(GAUSSIANS["images"], SETS["captions"])


@pytest.mark.parametrize("function", [S.cosine, S.Cosine()])
def test_a_set_is_not_a_point(function):
    with pytest.raises(ValueError, match=r"`captions` must be points .* received a set"):
        function(GAUSSIANS["images"], SETS["captions"])


@pytest.mark.parametrize("function", [S.maximum_pair, S.chamfer, S.smooth_chamfer])
def test_a_point_is_not_a_set(function):
    with pytest.raises(ValueError, match=r"`images` must be sets .* received a point"):
        function(GAUSSIANS["images"]["mean"], SETS["captions"])


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


def test_dimensions_must_agree_symbolically():
    images, captions = ({k: keras.Input((n,)) for k in ("mean", "log_variance")} for n in (6, 7))
    with pytest.raises(ValueError, match=r"received 6 .* and 7"):
        S.KLDivergence()(images, captions)


def test_masks_must_fit():
    wrong = {**SETS["images"], "mask": np.ones((4, 5), bool)}
    with pytest.raises(ValueError, match=r"'mask' of `images` .* = \(4, 3\); received \(4, 5\)"):
        S.chamfer(wrong, SETS["captions"])
