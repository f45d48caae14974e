"""PCME's match probability: against loops, against sampling, and without sampling."""

import keras
import numpy as np
import pytest
from scipy.special import expit

import oracles
from zoo import similarities as S

RNG = np.random.default_rng(2)


def gaussians(count, dim=8, log_variance=-2.0):
    embedding = oracles.random_gaussians(RNG, count, dim, spread=0.5)
    embedding["log_variance"] += np.float32(log_variance)
    return embedding


def truth(p, q, scale, shift, draws=40_000):
    """The mean over independent draws and its standard error."""
    z, t = (
        e["mean"] + np.exp(0.5 * e["log_variance"]) * RNG.normal(size=(draws, e["mean"].size))
        for e in (p, q)
    )
    values = expit(shift - scale * np.linalg.norm(z - t, axis=-1))
    return values.mean(), values.std() / np.sqrt(draws)


@pytest.mark.parametrize("masked", [False, True])
def test_against_loops(masked):
    images = oracles.random_sets(RNG, 4, 5, 3, masked)
    captions = oracles.random_sets(RNG, 6, 2, 3, masked)

    def valid(function, *arguments):
        def of_valid(p, q):
            p, q = (
                {"elements": s["elements"][s["mask"].astype(bool)] if masked else s["elements"]}
                for s in (p, q)
            )
            return function(p, q, *arguments)

        return oracles.pairs(of_valid, images, captions)

    expected = valid(oracles.match_probability, 3.0, 2.0)
    np.testing.assert_allclose(S.match_probability(images, captions, 3.0, 2.0), expected, rtol=1e-5)
    layer = S.MatchProbability(3.0, 2.0)(images, captions)
    np.testing.assert_allclose(expit(layer), expected, rtol=1e-5)
    expected = valid(oracles.average_l2)
    np.testing.assert_allclose(S.average_l2(images, captions), expected, rtol=1e-5)


def test_samples_have_the_right_moments():
    embedding = gaussians(3)
    draws = np.asarray(S.sample(embedding, 20_000, seed=3))
    deviation = np.exp(0.5 * embedding["log_variance"])
    error = deviation / np.sqrt(20_000)
    assert (np.abs(draws.mean(1) - embedding["mean"]) < 4.5 * error).all()
    np.testing.assert_allclose(draws.std(1), deviation, rtol=0.03)


def test_training_noise_is_unbiased_and_fresh():
    image, caption = gaussians(1), gaussians(1)
    caption["mean"] = image["mean"] + 0.2
    layer = S.MatchProbability(4.0, 5.0, num_samples=7, seed=5)
    draws = [expit(np.asarray(layer(image, caption, training=True))[0, 0]) for _ in range(150)]
    assert len(set(draws)) == len(draws)
    row = {k: v[0] for k, v in image.items()}, {k: v[0] for k, v in caption.items()}
    expected, error = truth(*row, 4.0, 5.0)
    assert abs(np.mean(draws) - expected) < 4 * np.hypot(np.std(draws) / np.sqrt(150), error)


def test_training_noise_differs_between_items():
    same = {k: np.repeat(v, 2, axis=0) for k, v in gaussians(1).items()}
    trained = np.asarray(S.MatchProbability(5.0, 5.0)(same, same, training=True))
    assert len(np.unique(trained)) == 4
    inferred = np.asarray(S.MatchProbability(5.0, 5.0)(same, same))
    np.testing.assert_allclose(inferred, inferred[0, 0], rtol=1e-5)


@pytest.mark.parametrize("method", ["sampled", "moment_matched"])
def test_inference_is_the_same_alone_in_blocks_and_again(method):
    images, captions = gaussians(6), gaussians(9)
    layer = S.MatchProbability(5.0, 5.0, method=method)
    whole = np.asarray(layer(images, captions))
    np.testing.assert_array_equal(whole, layer(images, captions))
    again = S.MatchProbability.from_config(layer.get_config())
    np.testing.assert_array_equal(whole, again(images, captions))
    for i in range(6):
        row = layer({k: v[i : i + 1] for k, v in images.items()}, captions)
        np.testing.assert_allclose(row[0], whole[i], atol=1e-4)
    block = layer({k: v[2:5] for k, v in images.items()}, {k: v[4:] for k, v in captions.items()})
    np.testing.assert_allclose(block, whole[2:5, 4:], atol=1e-4)


def test_another_seed_is_another_table():
    images, captions = gaussians(2), gaussians(3)
    one, two = (S.MatchProbability(5.0, 5.0, seed=s)(images, captions) for s in (0, 1))
    assert np.abs(one - two).min() > 0


def test_no_variance_is_the_distance_of_means():
    images, captions = gaussians(3, log_variance=-60.0), gaussians(4, log_variance=-60.0)
    distance = S.wasserstein_2(images, captions)
    for method in ("sampled", "moment_matched"):
        logit = S.MatchProbability(2.0, 3.0, method=method)(images, captions)
        np.testing.assert_allclose(logit, 3.0 - 2.0 * distance, atol=1e-4)


def test_learned_scale_and_shift_keep_the_papers_gradient():
    """d logit / d shift is 1 and d logit / d scale is −distance where σ → 0."""
    from gradients import value_and_gradients

    image, caption = gaussians(1, log_variance=-60.0), gaussians(1, log_variance=-60.0)
    layer = S.MatchProbability(10.0, 5.0)
    value, _, (by_scale, by_shift) = value_and_gradients(
        layer, image, caption, trainable=[layer.scale, layer.shift]
    )
    np.testing.assert_allclose(by_shift, 1.0, rtol=1e-5)
    np.testing.assert_allclose(10.0 * by_scale + 5.0, value.item(), rtol=1e-4)


def test_scale_stays_positive_under_the_optimizer():
    layer = S.MatchProbability(0.5, 0.0)
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build(layer.trainable_variables)
    optimizer.apply([np.float32(100.0), np.float32(0.0)])
    assert 0 < float(layer.scale) < 0.5


@pytest.mark.parametrize(
    ("dim", "log_variance", "scale", "shift"), [(2, -2.0, 5.0, 5.0), (64, -5.0, 10.0, 14.0)]
)
def test_moment_matching_against_sampling(dim, log_variance, scale, shift):
    images, captions = gaussians(4, dim, log_variance), gaussians(4, dim, log_variance)
    for embedding in (images, captions):
        embedding["mean"] *= np.float32(1.5 / np.sqrt(dim)) * RNG.uniform(size=(4, 1)).astype("f")
    matched = np.asarray(S.moment_matched_match_probability(images, captions, scale, shift))
    expected = np.empty((4, 4))
    errors = np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            row = {k: v[i] for k, v in images.items()}, {k: v[j] for k, v in captions.items()}
            expected[i, j], errors[i, j] = truth(*row, scale, shift)
    assert np.ptp(expected) > 0.3
    # The cube root is nearly, not exactly, normal; the approximation is best in high dimensions.
    assert (np.abs(matched - expected) < 4 * errors + (0.02 if dim == 2 else 2e-3)).all()
    sampled = expit(S.MatchProbability(scale, shift, num_samples=7)(images, captions))
    assert ((matched - expected) ** 2).mean() < 0.2 * ((sampled - expected) ** 2).mean()


def test_moments_of_the_squared_distance():
    from zoo.similarities.sampled import squared_distance_variance

    image, caption = gaussians(1), gaussians(1)
    z, t = (np.asarray(S.sample(e, 100_000, seed=s))[0] for s, e in enumerate((image, caption)))
    squared = ((z - t) ** 2).sum(-1)
    variance = squared_distance_variance(image, caption)
    error = (((squared - squared.mean()) ** 2).std()) / np.sqrt(100_000)
    assert abs(variance[0, 0] - squared.var()) < 4 * error


def test_both_sides_have_noise_of_their_own():
    """With one table for both, an item and its twin would have distance zero in each sample."""
    same = {"mean": np.zeros((1, 6), "float32"), "log_variance": np.zeros((1, 6), "float32")}
    layer = S.MatchProbability(1.0, 0.0, num_samples=1)
    distance = -float(layer(same, same)[0, 0])
    assert distance > 1.0, "√(2 · 6) on average"
