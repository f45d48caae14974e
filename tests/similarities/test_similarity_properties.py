"""What must hold for every pair of Gaussians, whatever the numbers."""

import numpy as np
import pytest

import oracles
from zoo import similarities as S

RNG = np.random.default_rng(4)
IMAGES = oracles.random_gaussians(RNG, 5, 6)
CAPTIONS = oracles.random_gaussians(RNG, 8, 6)


def squared_w2(images, captions):
    return S.wasserstein_2(images, captions, squared=True)


def moment_matched(images, captions):
    return S.moment_matched_match_probability(images, captions, 2.0, 5.0)


SYMMETRIC = [
    S.closed_form_sampled_distance,
    S.wasserstein_2,
    squared_w2,
    S.min_kl_divergence,
    S.jeffreys_divergence,
    S.log_expected_likelihood,
    S.bhattacharyya_distance,
    moment_matched,
]
ALL = [*SYMMETRIC, S.kl_divergence, S.reverse_kl_divergence]
DIVERGENCES = [
    S.wasserstein_2,
    S.kl_divergence,
    S.reverse_kl_divergence,
    S.min_kl_divergence,
    S.jeffreys_divergence,
    S.bhattacharyya_distance,
]


@pytest.mark.parametrize("function", ALL)
def test_shape_and_dtype(function):
    value = function(IMAGES, CAPTIONS)
    assert tuple(value.shape) == (5, 8)
    assert value.dtype == "float32"


@pytest.mark.parametrize("function", SYMMETRIC)
def test_symmetry(function):
    swapped = np.transpose(function(CAPTIONS, IMAGES))
    np.testing.assert_allclose(function(IMAGES, CAPTIONS), swapped, rtol=1e-4, atol=1e-5)


def test_kl_is_not_symmetric_and_its_reverse_is_the_swap():
    kl, reverse = S.kl_divergence(IMAGES, CAPTIONS), S.reverse_kl_divergence(IMAGES, CAPTIONS)
    assert np.abs(kl - reverse).min() > 1e-3
    np.testing.assert_allclose(reverse, np.transpose(S.kl_divergence(CAPTIONS, IMAGES)), rtol=1e-4)


@pytest.mark.parametrize("function", ALL)
def test_shifting_both_means_changes_nothing(function):
    shift = RNG.normal(size=6)
    moved = [{**e, "mean": np.float32(e["mean"] + shift)} for e in (IMAGES, CAPTIONS)]
    expected = function(IMAGES, CAPTIONS)
    np.testing.assert_allclose(function(*moved), expected, rtol=1e-4, atol=1e-5)
    far = [{**e, "mean": np.float32(e["mean"] + 1000.0)} for e in (IMAGES, CAPTIONS)]
    exact = [{**e, "mean": e["mean"] - np.float32(1000.0)} for e in far]  # after its rounding
    np.testing.assert_allclose(function(*far), function(*exact), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", DIVERGENCES)
def test_zero_for_equals_positive_for_others(function):
    value = np.asarray(function(IMAGES, IMAGES))
    # the root magnifies the rounding of the square
    np.testing.assert_allclose(
        np.diagonal(value), 0.0, atol=3e-3 if function is S.wasserstein_2 else 1e-5
    )
    assert (value[~np.eye(5, dtype=bool)] > 0.1).all()
    assert (value >= 0).all()


@pytest.mark.parametrize("function", ALL)
def test_one_query_alone_is_its_row_of_a_batch(function):
    whole = np.asarray(function(IMAGES, CAPTIONS))
    for i in range(5):
        row = function({k: v[i : i + 1] for k, v in IMAGES.items()}, CAPTIONS)
        np.testing.assert_allclose(row[0], whole[i], rtol=1e-4, atol=1e-5)
    column = function(IMAGES, {k: v[3:4] for k, v in CAPTIONS.items()})
    np.testing.assert_allclose(column, whole[:, 3:4], rtol=1e-4, atol=1e-5)


def test_csd_without_variance_is_the_squared_distance():
    images, captions = (
        {**e, "log_variance": np.full_like(e["mean"], -60.0)} for e in (IMAGES, CAPTIONS)
    )
    squared = ((IMAGES["mean"][:, None] - CAPTIONS["mean"][None]) ** 2).sum(-1)
    np.testing.assert_allclose(S.closed_form_sampled_distance(images, captions), squared, rtol=1e-5)
    np.testing.assert_allclose(S.wasserstein_2(images, captions), np.sqrt(squared), rtol=1e-5)
    logit = S.ClosedFormSampledDistance(3.0, 2.0)(images, captions)
    np.testing.assert_allclose(logit, 2.0 - 3.0 * squared, rtol=1e-5)


def test_csd_ranks_as_l2_search_with_one_more_coordinate():
    spread = np.sqrt(np.exp(CAPTIONS["log_variance"]).sum(1, keepdims=True))
    gallery = np.concatenate([CAPTIONS["mean"], spread], axis=1)
    query = np.concatenate([IMAGES["mean"], np.zeros((5, 1))], axis=1)
    own = np.exp(IMAGES["log_variance"]).sum(1, keepdims=True)
    squared = ((query[:, None] - gallery[None]) ** 2).sum(-1)
    np.testing.assert_allclose(
        S.closed_form_sampled_distance(IMAGES, CAPTIONS), squared + own, rtol=1e-5
    )


def test_equal_variances_relate_the_divergences():
    same = RNG.normal(size=6).astype("float32")
    images, captions = (
        {**e, "log_variance": np.tile(same, (len(e["mean"]), 1))} for e in (IMAGES, CAPTIONS)
    )
    jeffreys = S.jeffreys_divergence(images, captions)
    np.testing.assert_allclose(S.kl_divergence(images, captions), jeffreys, rtol=1e-4)
    np.testing.assert_allclose(4 * S.bhattacharyya_distance(images, captions), jeffreys, rtol=1e-4)


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
