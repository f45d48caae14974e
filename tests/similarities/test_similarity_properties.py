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


ALL = [
    S.closed_form_sampled_distance,
    S.wasserstein_2,
    squared_w2,
    S.min_kl_divergence,
    S.jeffreys_divergence,
    S.log_expected_likelihood,
    S.bhattacharyya_distance,
    moment_matched,
    S.kl_divergence,
    S.reverse_kl_divergence,
]


@pytest.mark.parametrize("function", ALL)
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
