import numpy as np
import pytest
from keras import tree

import oracles
from gradients import value_and_gradients
from zoo import similarities as S

RNG = np.random.default_rng(5)
DIM = 16
LAYERS = {
    "csd": S.ClosedFormSampledDistance(),
    "w2": S.Wasserstein2(),
    "w2_squared": S.Wasserstein2(squared=True),
    "kl": S.KLDivergence(),
    "min_kl": S.MinKLDivergence(),
    "jeffreys": S.JeffreysDivergence(),
    "expected_likelihood": S.ExpectedLikelihood(),
    "bhattacharyya": S.Bhattacharyya(),
    "match_probability": S.MatchProbability(5.0, 5.0),
    "moment_matched": S.MatchProbability(5.0, 5.0, method="moment_matched"),
    "average_l2": S.AverageL2(),
}


def constant(mean, log_variance, count=3, dtype="float32"):
    return {
        "mean": np.full((count, DIM), mean, dtype),
        "log_variance": np.full((count, DIM), log_variance, dtype),
    }


def mixed(count, low=-30.0, high=30.0, mean=1e4):
    return {
        "mean": (mean * RNG.choice([-1.0, 0.0, 1.0], size=(count, DIM))).astype("float32"),
        "log_variance": RNG.choice([low, 0.0, high], size=(count, DIM)).astype("float32"),
    }


EDGES = {
    "identical": (constant(0.5, 0.0), constant(0.5, 0.0)),
    "zero": (constant(0.0, 0.0), constant(0.0, 0.0)),
    "narrow": (constant(0.5, -30.0), constant(0.5, -30.0)),
    "wide": (constant(0.5, 30.0), constant(0.5, 30.0)),
    "narrow against wide": (constant(0.5, -30.0), constant(-0.5, 30.0)),
    "far": (constant(1e4, 0.0), constant(-1e4, 0.0)),
    "far and narrow": (constant(1e4, -30.0), constant(-1e4, -30.0)),
    "far and wide": (constant(1e4, 30.0), constant(-1e4, 30.0)),
    "everything": (mixed(6), mixed(9)),
    "mostly wide": (
        {**mixed(6), "log_variance": np.where(np.arange(DIM) > 2, 30.0, [[-30.0]] * 6).astype("f")},
        {**mixed(9), "log_variance": np.where(np.arange(DIM) > 2, 30.0, [[-30.0]] * 9).astype("f")},
    ),
    "one pair": (constant(0.5, -30.0, count=1), constant(0.5, -30.0, count=1)),
    "half precision": (constant(0.5, -2.0, dtype="float16"), constant(0.25, -2.0, dtype="float16")),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", LAYERS)
def test_finite(name, edge):
    layer = LAYERS[name]
    value, gradients, *by_weights = value_and_gradients(
        layer, *EDGES[edge], trainable=layer.trainable_variables
    )
    assert value.dtype == "float32"
    assert np.isfinite(value).all()
    for gradient in tree.flatten((gradients, by_weights)):
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", ["csd", "match_probability", "moment_matched"])
@pytest.mark.parametrize("training", [False, True])
def test_finite_in_training_with_many_samples(name, training):
    layer = LAYERS[name]
    kwargs = {"training": training} if name != "csd" else {}
    value, _ = value_and_gradients(lambda i, c: layer(i, c, **kwargs), *EDGES["everything"])
    assert np.isfinite(value).all()


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_cancellation_between_near_duplicates(shift):
    """At dim 1024, for a small difference of large vectors, against float64.

    The error of the square must stay within a few roundings (2⁻²⁴) of the squared norm about the
    common centre, however far from the origin everything is.
    """
    dim = 1024
    base = RNG.normal(size=(4, dim))
    images = np.float32(base + shift)
    captions = np.float32(base + 1e-2 * RNG.normal(size=base.shape) + shift)
    log_variance = np.full((4, dim), -4.0, "float32")
    images = {"mean": images, "log_variance": log_variance}
    captions = {"mean": captions, "log_variance": log_variance}
    exact = oracles.pairs(oracles.w2, images, captions)
    squared = np.asarray(S.wasserstein_2(images, captions, squared=True))
    bound = 16 * 2.0**-24 * 2 * (base**2).sum(1).max()
    assert np.abs(squared - exact**2).max() < bound
    assert (squared >= 0).all()
    np.testing.assert_allclose(np.diagonal(squared), np.diagonal(exact) ** 2, rtol=0.02)
    precision = np.exp(4.0)
    kl = np.asarray(S.kl_divergence(images, captions))
    assert np.abs(kl - 0.5 * precision * exact**2).max() < 0.5 * precision * bound
    # float16 means of the same points are rounded by the caller, not by us
    half = {**images, "mean": np.float16(base)}, {**captions, "mean": np.float16(base)}
    assert np.abs(np.diagonal(S.wasserstein_2(*half, squared=True))).max() < bound


def test_identical_points_have_zero_distance_and_zero_gradient_of_the_root():
    points = oracles.random_gaussians(RNG, 1, 1024)
    value, gradients = value_and_gradients(S.wasserstein_2, points, points)
    assert value.item() < 1e-14
    assert all((g == 0).all() for g in tree.flatten(gradients))


@pytest.mark.parametrize("logit", [1e4, -1e4])
def test_match_logits_do_not_saturate(logit):
    """Where sigmoid is 0 or 1 in float32 the logit still tells the difference and has a slope."""
    images, captions = constant(0.0, -30.0), constant(1.0, -30.0)
    distance = np.sqrt(DIM)
    for method in ("sampled", "moment_matched"):
        layer = S.MatchProbability(100.0, logit + 100.0 * distance, method=method)
        value, gradients = value_and_gradients(layer, images, captions)
        np.testing.assert_allclose(value, logit, rtol=1e-4)
        # three captions pull on each image along every dimension: −100 · (μ − μ') / distance
        np.testing.assert_allclose(gradients[0]["mean"], 3 * 100.0 / distance, rtol=1e-3)


@pytest.mark.parametrize(
    "function", [S.cosine, S.maximum_pair, S.chamfer, S.smooth_chamfer], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("value", [0.0, 1e-20, 1e4, 65504.0])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_finite_cosines_of_extreme_vectors(function, value, dtype):
    shape = (3, DIM) if function is S.cosine else (3, 2, DIM)
    images = np.full(shape, value, dtype)
    images[0, ..., 0] = -value
    similarity, gradients = value_and_gradients(function, images, -images)
    assert similarity.dtype == "float32"
    assert np.isfinite(similarity).all()
    assert np.abs(similarity).max() < 1.0 + np.log(4) / 16 + 1e-5
    assert all(np.isfinite(g).all() for g in gradients)
