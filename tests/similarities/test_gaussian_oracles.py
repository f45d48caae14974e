"""Gaussian quantities against TFP, quadrature and sampling in float64."""

import numpy as np
import pytest
import tensorflow_probability as tfp

import oracles
from zoo import similarities as S

tfd = tfp.distributions
RNG = np.random.default_rng(1)
IMAGES = oracles.random_gaussians(RNG, 5, 6)
CAPTIONS = oracles.random_gaussians(RNG, 7, 6)


def tfp_kl(p, q):
    def make(gaussian):
        return tfd.MultivariateNormalDiag(gaussian["mean"], np.exp(0.5 * gaussian["log_variance"]))

    return make(p).kl_divergence(make(q)).numpy()


KL = oracles.pairs(tfp_kl, IMAGES, CAPTIONS)
REVERSE_KL = oracles.pairs(tfp_kl, CAPTIONS, IMAGES).T


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (S.kl_divergence, KL),
        (S.reverse_kl_divergence, REVERSE_KL),
        (S.min_kl_divergence, np.minimum(KL, REVERSE_KL)),
        (S.jeffreys_divergence, 0.5 * (KL + REVERSE_KL)),
        (S.closed_form_sampled_distance, oracles.pairs(oracles.csd, IMAGES, CAPTIONS)),
        (S.wasserstein_2, oracles.pairs(oracles.w2, IMAGES, CAPTIONS)),
    ],
)
def test_closed_form(function, expected):
    np.testing.assert_allclose(function(IMAGES, CAPTIONS), expected, rtol=1e-4)


def test_overlaps_against_quadrature():
    likelihood = oracles.pairs(
        lambda p, q: oracles.log_product_integral(p, q, power=1.0), IMAGES, CAPTIONS
    )
    affinity = oracles.pairs(
        lambda p, q: oracles.log_product_integral(p, q, power=0.5), IMAGES, CAPTIONS
    )
    np.testing.assert_allclose(S.log_expected_likelihood(IMAGES, CAPTIONS), likelihood, rtol=1e-4)
    np.testing.assert_allclose(S.bhattacharyya_distance(IMAGES, CAPTIONS), -affinity, rtol=1e-4)


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
        S.kl_divergence(distribution(IMAGES), distribution(CAPTIONS)), KL, rtol=1e-4
    )
