"""The post-hoc posterior against the explicit Kronecker product, and its cosine by sampling."""

import keras
import numpy as np
import pytest

import zoo
from zoo import similarities
from zoo.models import kronecker

RNG = np.random.default_rng(0)
P, Q, COUNT, SCALE, PSEUDO = 5, 4, 30, 7.0, 10.0
FEATURES = RNG.normal(size=(COUNT, P))
WEIGHT = RNG.normal(size=(P, Q))
OTHERS = RNG.normal(size=(COUNT, Q))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def explicit():
    """A and B item by item, by the Jacobian and the Hessian of the softmax as written."""
    first, second = np.zeros((P, P)), np.zeros((Q, Q))
    others = unit(OTHERS)
    for feature in FEATURES:
        projected = feature @ WEIGHT
        direction, length = unit(projected), np.linalg.norm(projected)
        logits = SCALE * others @ direction
        share = np.exp(logits) / np.exp(logits).sum()
        jacobian = (np.eye(Q) - np.outer(direction, direction)) / length
        hessian = others.T @ (np.diag(share) - np.outer(share, share)) @ others
        first += np.outer(feature, feature)
        second += SCALE**2 * jacobian @ hessian @ jacobian.T
    return first / np.sqrt(COUNT), second / np.sqrt(COUNT)


def test_the_factors_are_the_sums_over_items(explicit):
    first, second = kronecker.factors(FEATURES, FEATURES @ WEIGHT, OTHERS, SCALE)
    np.testing.assert_allclose(first, explicit[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second, explicit[1], rtol=1e-3, atol=1e-4)


def test_the_curvature_is_the_hessian_of_the_loss():
    """B of one item at its own softmax is the generalised Gauss–Newton matrix, by differences."""
    own, others = FEATURES[:1] @ WEIGHT, unit(OTHERS)

    def logits(g):
        return SCALE * others @ unit(g)

    step = 1e-5
    jacobian = np.stack(
        [(logits(own[0] + step * e) - logits(own[0] - step * e)) / (2 * step) for e in np.eye(Q)],
        axis=1,
    )
    share = np.exp(logits(own[0])) / np.exp(logits(own[0])).sum()
    expected = jacobian.T @ (np.diag(share) - np.outer(share, share)) @ jacobian
    found = kronecker._curvature(own.astype("float32"), OTHERS.astype("float32"), SCALE)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_determinant_and_variance_are_those_of_the_explicit_kronecker_product(explicit):
    """|A ⊗ B| = |A|^q |B|^p with A of p × p. The released code exchanges the exponents, which
    p ≠ q tells apart."""
    first, second = explicit
    precision = 0.7
    tilde = [np.sqrt(PSEUDO) * m + np.sqrt(precision) * np.eye(len(m)) for m in explicit]
    whole = np.kron(*tilde)
    norm = np.square(WEIGHT).sum()
    expected = -0.5 * precision * norm + 0.5 * P * Q * np.log(precision)
    expected -= 0.5 * np.linalg.slogdet(whole)[1]
    values = [np.linalg.eigvalsh(m) for m in explicit]
    found = kronecker.log_marginal_likelihood(values, norm, precision, PSEUDO)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    exchanged = -0.5 * precision * norm + 0.5 * P * Q * np.log(precision)
    exchanged -= 0.5 * sum(k * np.linalg.slogdet(m)[1] for k, m in zip((P, Q), tilde, strict=True))
    assert abs(found - exchanged) > 0.1
    # The predictive variance of g = Wφ: (φᵀ ⊗ I) Σ (φ ⊗ I), its diagonal.
    posterior = kronecker.posterior(first, second, norm, PSEUDO, precision)
    wide = np.kron(FEATURES[3][None], np.eye(Q))
    covariance = wide @ np.linalg.inv(whole) @ wide.T
    spread = np.square(FEATURES[3] @ posterior.root).sum()
    np.testing.assert_allclose(spread * posterior.diagonal, np.diag(covariance), rtol=1e-8)


def test_the_prior_has_the_greatest_marginal_likelihood(explicit):
    norm = np.square(WEIGHT).sum()
    best = kronecker.posterior(*explicit, norm).prior_precision
    values = [np.linalg.eigvalsh(m) for m in explicit]
    at = [kronecker.log_marginal_likelihood(values, norm, f * best) for f in (0.9, 1.0, 1.1)]
    assert at[1] == max(at)


def test_the_model_has_that_posterior_and_survives_saving(tmp_path):
    images, captions = FEATURES.astype("float32"), RNG.normal(size=(COUNT, 6)).astype("float32")
    weights = WEIGHT, RNG.normal(size=(6, Q))
    model = zoo.models.laplace(
        images, captions, *weights, scale=SCALE, prior_precision=1.0, normalize=False
    )
    found = model.image_encoder(images)
    np.testing.assert_allclose(found["mean"], images @ WEIGHT, rtol=1e-4, atol=1e-5)
    posterior = kronecker.posterior(
        *kronecker.factors(images, images @ WEIGHT, captions @ weights[1], SCALE),
        np.square(WEIGHT).sum(),
        prior_precision=1.0,
    )
    expected = np.square(images @ posterior.root).sum(1, keepdims=True) * posterior.diagonal
    np.testing.assert_allclose(np.exp(found["log_variance"]), expected, rtol=1e-4)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    again = loaded.image_encoder(images)
    np.testing.assert_allclose(again["log_variance"], found["log_variance"], rtol=1e-6)
    logits = model.similarity(found, model.caption_encoder(captions))
    np.testing.assert_allclose(loaded.similarity(again, loaded.caption_encoder(captions)), logits)
    with pytest.raises(ValueError, match="must both be given, or neither"):
        zoo.models.laplace(images, images, WEIGHT)
    with pytest.raises(ValueError, match="must be as many vectors"):
        zoo.models.laplace(images, images[1:])


def test_the_scale_of_pairs_is_found():
    """Captions drawn by the softmax of a known scale give that scale back."""
    rng = np.random.default_rng(3)
    images = unit(rng.normal(size=(2000, 8)))
    captions = unit(images + 0.15 * rng.normal(size=images.shape))
    scale = kronecker.softmax_scale(images, captions)
    cosines = images @ captions.T

    def loss(t):
        logits = t * cosines
        both = (logits, logits.T)
        return sum(np.mean(np.log(np.exp(x).sum(1)) - np.diag(x)) for x in both)

    assert loss(scale) < min(loss(0.9 * scale), loss(1.1 * scale))


def test_cosine_of_two_gaussians_by_monte_carlo():
    """Mean and variance in the regime where lengths hardly vary, which the formulas assume."""
    rng = np.random.default_rng(1)
    dim, samples = 64, 20_000
    sides = [
        {
            "mean": rng.normal(size=(2, dim)).astype("float32"),
            "log_variance": (rng.normal(size=(2, dim)) - 2.0).astype("float32"),
        }
        for _ in range(2)
    ]
    mean = np.asarray(similarities.expected_cosine(*sides))
    variance = np.asarray(similarities.cosine_variance(*sides))
    drawn = [
        side["mean"] + np.exp(0.5 * side["log_variance"]) * rng.normal(size=(samples, 2, dim))
        for side in sides
    ]
    cosines = np.einsum("snd,smd->snm", *map(unit, drawn))
    np.testing.assert_allclose(mean, cosines.mean(0), atol=0.005)
    # The formula leaves out that lengths vary with the product; in 64 dimensions that is a tenth.
    np.testing.assert_allclose(variance, cosines.var(0), rtol=0.15)


def test_probabilistic_cosine_without_variance_is_the_cosine_and_with_it_less_sure():
    rng = np.random.default_rng(2)
    means = rng.normal(size=(2, 3, 5)).astype("float32")
    sharp = [{"mean": m, "log_variance": np.full_like(m, -40.0)} for m in means]
    blurred = [{"mean": m, "log_variance": np.full_like(m, -1.0)} for m in means]
    plain = similarities.Cosine(10.0)(*sharp)
    layer = similarities.ProbabilisticCosine(10.0)
    np.testing.assert_allclose(layer(*sharp), plain, rtol=1e-5, atol=1e-5)
    assert (np.abs(layer(*blurred)) < np.abs(plain)).all()
    without = similarities.ProbabilisticCosine(10.0, probit=False)
    ratio = np.asarray(without(*blurred)) / np.asarray(layer(*blurred))
    expected = np.sqrt(1 + np.pi / 8 * 100 * np.asarray(similarities.cosine_variance(*blurred)))
    np.testing.assert_allclose(ratio, expected, rtol=1e-5)
    for probit in (True, False):
        own = similarities.ProbabilisticCosine(10.0, probit=probit)
        index = zoo.search.Index.build(blurred[0], own)
        scores, ids = index.search(blurred[1], 3)
        logits = np.asarray(own(*blurred)).T
        np.testing.assert_array_equal(ids, np.argsort(-logits, axis=1))
        np.testing.assert_allclose(scores, -np.sort(-logits, axis=1), rtol=1e-5)
