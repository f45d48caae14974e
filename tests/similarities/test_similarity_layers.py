"""Every similarity: a layer, by TFP, quadrature, sampling and loops, and what changes nothing."""

import numpy as np
import pytest
import tensorflow_probability as tfp

import oracles
from gradients import value_and_gradients
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


IMAGES = oracles.random_gaussians(RNG, 5, 6)
CAPTIONS = oracles.random_gaussians(RNG, 8, 6)


def squared_w2(images, captions):
    return S.wasserstein_2(images, captions, squared=True)


@pytest.mark.parametrize("function", [*FUNCTIONS[:-1], squared_w2])
def test_shifting_both_means_changes_nothing(function):
    shift = RNG.normal(size=6)
    moved = [{**e, "mean": np.float32(e["mean"] + shift)} for e in (IMAGES, CAPTIONS)]
    expected = function(IMAGES, CAPTIONS)
    np.testing.assert_allclose(function(*moved), expected, rtol=1e-4, atol=1e-5)
    far = [{**e, "mean": np.float32(e["mean"] + 1000.0)} for e in (IMAGES, CAPTIONS)]
    exact = [{**e, "mean": e["mean"] - np.float32(1000.0)} for e in far]  # after its rounding
    np.testing.assert_allclose(function(*far), function(*exact), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("layer", "quantity"),
    [
        (S.Wasserstein2(), lambda i, c: -S.wasserstein_2(i, c)),
        (S.Wasserstein2(squared=True), lambda i, c: -squared_w2(i, c)),
        (S.KLDivergence(), lambda i, c: -S.kl_divergence(i, c)),
        (S.MinKLDivergence(), lambda i, c: -S.min_kl_divergence(i, c)),
        (S.JeffreysDivergence(), lambda i, c: -S.jeffreys_divergence(i, c)),
        (S.ExpectedLikelihood(), S.log_expected_likelihood),
        (S.Bhattacharyya(), lambda i, c: -S.bhattacharyya_distance(i, c)),
        (
            S.ClosedFormSampledDistance(3.0, 2.0),
            lambda i, c: 2.0 - 3.0 * S.closed_form_sampled_distance(i, c),
        ),
    ],
)
def test_layers_are_the_quantity_with_higher_for_better(layer, quantity):
    np.testing.assert_allclose(layer(IMAGES, CAPTIONS), quantity(IMAGES, CAPTIONS), rtol=1e-6)


@pytest.mark.parametrize("block", [6, 6 * 9, 6 * 1000])
def test_streamed_sums_do_not_depend_on_the_blocks(block):
    from gradients import value_and_gradients
    from zoo.similarities.summed_variance import SummedVarianceTerms

    arrays = [e[k] for e in (IMAGES, CAPTIONS) for k in ("mean", "log_variance")]
    weight = RNG.normal(size=(5, 8)).astype("float32")

    def plain(image_mean, image_log, caption_mean, caption_log):
        import keras

        total = keras.ops.exp(image_log)[:, None] + keras.ops.exp(caption_log)[None]
        difference = image_mean[:, None] - caption_mean[None]
        terms = 0.3 * difference**2 / total + 0.7 * keras.ops.log(total)
        return keras.ops.sum(terms, axis=-1)

    expected, expected_gradients = value_and_gradients(plain, *arrays, weight=weight)
    streamed = SummedVarianceTerms(quadratic=0.3, log=0.7, block=block)
    value, gradients = value_and_gradients(streamed, *arrays, weight=weight)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


tfd = tfp.distributions
OTHERS = oracles.random_gaussians(RNG, 7, 6)


def tfp_kl(p, q):
    """KL of every pair `(N, M)`, in double precision."""

    def make(gaussian, axis):
        mean, log_variance = (
            np.expand_dims(gaussian[key].astype("float64"), axis)
            for key in ("mean", "log_variance")
        )
        return tfd.MultivariateNormalDiag(mean, np.exp(0.5 * log_variance))

    return make(p, 1).kl_divergence(make(q, 0)).numpy()


KL = tfp_kl(IMAGES, OTHERS)
REVERSE_KL = tfp_kl(OTHERS, IMAGES).T


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (S.kl_divergence, KL),
        (S.reverse_kl_divergence, REVERSE_KL),
        (S.min_kl_divergence, np.minimum(KL, REVERSE_KL)),
        (S.jeffreys_divergence, 0.5 * (KL + REVERSE_KL)),
        (S.closed_form_sampled_distance, oracles.pairs(oracles.csd, IMAGES, OTHERS)),
        (S.wasserstein_2, oracles.pairs(oracles.w2, IMAGES, OTHERS)),
    ],
)
def test_closed_form(function, expected):
    np.testing.assert_allclose(function(IMAGES, OTHERS), expected, rtol=1e-4)


def test_overlaps_against_quadrature():
    likelihood = oracles.pairs(
        lambda p, q: oracles.log_product_integral(p, q, power=1.0), IMAGES, OTHERS
    )
    affinity = oracles.pairs(
        lambda p, q: oracles.log_product_integral(p, q, power=0.5), IMAGES, OTHERS
    )
    np.testing.assert_allclose(S.log_expected_likelihood(IMAGES, OTHERS), likelihood, rtol=1e-4)
    np.testing.assert_allclose(S.bhattacharyya_distance(IMAGES, OTHERS), -affinity, rtol=1e-4)


def test_w2_is_the_optimal_transport_cost():
    """Sorted samples are the optimal coupling in one dimension, so quantiles give W2."""
    from scipy import stats

    levels = (np.arange(200_000) + 0.5) / 200_000
    p, q = stats.norm(0.3, 0.5).ppf(levels), stats.norm(-1.0, 2.0).ppf(levels)
    image = {"mean": [[0.3]], "log_variance": [[2 * np.log(0.5)]]}
    caption = {"mean": [[-1.0]], "log_variance": [[2 * np.log(2.0)]]}
    image, caption = ({k: np.float32(v) for k, v in e.items()} for e in (image, caption))
    expected = ((p - q) ** 2).mean()
    np.testing.assert_allclose(S.wasserstein_2(image, caption, squared=True), expected, rtol=1e-3)


def test_takes_distributions():
    from zoo.embeddings import distribution

    np.testing.assert_allclose(
        S.kl_divergence(distribution(IMAGES), distribution(OTHERS)), KL, rtol=1e-4
    )


OF_SETS = [
    (S.maximum_pair, oracles.maximum_pair),
    (S.chamfer, oracles.chamfer),
    (S.smooth_chamfer, lambda p, q: oracles.smooth_chamfer(p, q, 16.0)),
    (lambda i, c: S.smooth_chamfer(i, c, 60.0), lambda p, q: oracles.smooth_chamfer(p, q, 60.0)),
    (S.SetMatchProbability(3.0, -1.0), lambda p, q: oracles.set_match_probability(p, q, 3.0, -1.0)),
]
NAMES = ["maximum_pair", "chamfer", "smooth_chamfer", "smooth_chamfer_60", "set_match_probability"]


@pytest.mark.parametrize(("function", "oracle"), OF_SETS, ids=NAMES)
@pytest.mark.parametrize("masked", [False, True])
def test_against_loops(function, oracle, masked):
    images = oracles.random_sets(RNG, 4, 3, 5, masked)
    captions = oracles.random_sets(RNG, 6, 5, 5, masked)
    expected = oracles.pairs(oracle, images, captions)
    np.testing.assert_allclose(function(images, captions), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("function", "oracle"), OF_SETS, ids=NAMES)
def test_masked_elements_change_neither_value_nor_gradient(function, oracle):
    images = oracles.random_sets(RNG, 4, 3, 5, masked=True)
    captions = oracles.random_sets(RNG, 6, 4, 5, masked=True)
    value, gradients = value_and_gradients(function, images, captions)
    other = [{**s, "elements": s["elements"].copy()} for s in (images, captions)]
    for s in other:
        s["elements"][~s["mask"]] = 1e4 * RNG.normal(size=5)
    again, _ = value_and_gradients(function, *other)
    np.testing.assert_allclose(again, value, atol=1e-6)
    for s, gradient in zip((images, captions), gradients, strict=True):
        assert (gradient["elements"][~s["mask"]] == 0).all()
        assert (gradient["elements"][s["mask"]] != 0).any()


@pytest.mark.parametrize(("function", "oracle"), OF_SETS, ids=NAMES)
def test_a_set_without_elements_is_the_worst_match_and_finite(function, oracle):
    images = oracles.random_sets(RNG, 3, 2, 5)
    images["mask"] = np.array([[True, True], [False, False], [True, False]])
    captions = oracles.random_sets(RNG, 4, 3, 5)
    value, gradients = value_and_gradients(function, images, captions)
    assert np.isfinite(value).all()
    assert (value[1] <= value[[0, 2]].min(0)).all()
    assert all(np.isfinite(g["elements"]).all() for g in gradients)


@pytest.mark.parametrize("alpha", [0.5, 16.0, 39.0, 41.0, 1e4])
def test_smooth_chamfer_approaches_chamfer(alpha):
    images, captions = oracles.random_sets(RNG, 4, 3, 5), oracles.random_sets(RNG, 6, 4, 5)
    excess = np.asarray(S.smooth_chamfer(images, captions, alpha) - S.chamfer(images, captions))
    assert (excess >= -1e-6).all()
    assert (excess <= (np.log(3) + np.log(4)) / (2 * alpha) + 1e-6).all()


@pytest.mark.parametrize("alpha", [16.0, 39.9, 100.0])
def test_smooth_chamfer_of_opposites(alpha):
    """All cosines −1 or 1: the extremes that an exponential must survive."""
    ones = np.ones((1, 3, 4), "float32")
    for sign in (1.0, -1.0):
        value, gradients = value_and_gradients(
            lambda i, c: S.smooth_chamfer(i, c, alpha), ones, sign * ones
        )
        np.testing.assert_allclose(value, sign + np.log(3) / alpha, rtol=1e-5)
        assert all(np.isfinite(g).all() for g in gradients)


def test_cosine_against_numpy():
    images, captions = RNG.normal(size=(4, 5)), RNG.normal(size=(6, 5))
    expected = (images / np.linalg.norm(images, axis=1)[:, None]) @ (
        captions / np.linalg.norm(captions, axis=1)[:, None]
    ).T
    np.testing.assert_allclose(S.cosine(images, captions), expected, atol=1e-6)
    np.testing.assert_allclose(S.Cosine(scale=3.0)(images, captions), 3 * expected, atol=1e-5)


def test_learned_cosine_scale():
    import keras

    images, captions = RNG.normal(size=(4, 5)), RNG.normal(size=(6, 5))
    layer = S.Cosine(scale=10.0, learn_scale=True, max_scale=20.0)
    np.testing.assert_allclose(layer(images, captions), 10 * S.cosine(images, captions), rtol=1e-5)
    value, _, (by_log_scale,) = value_and_gradients(
        layer, images, captions, trainable=[layer.log_scale]
    )
    np.testing.assert_allclose(by_log_scale, value.sum(), rtol=1e-4)
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build(layer.trainable_variables)
    optimizer.apply([np.float32(-100.0)])
    np.testing.assert_allclose(layer.scale, 20.0, rtol=1e-6)
    assert not S.Cosine(scale=10.0).trainable_variables
