"""Every loss against explicit loops over pairs, on every kind of labels."""

import numpy as np
import pytest

import loss_loops as loops
from zoo import losses

RNG = np.random.default_rng(7)


@pytest.fixture(params=loops.KINDS)
def problem(request):
    return loops.random_problem(np.random.default_rng(3), kind=request.param)


def float64(*arrays):
    return [array.astype("float64") for array in arrays]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("weight", "pair_weight"), [(0.0, 1.0), (0.3, 1.0), (0.3, 2.0)])
def test_matching_crossentropy(problem, weight, pair_weight, reduction):
    value = losses.MatchingCrossentropy(weight, reduction, pair_weight)(*problem)
    expected = loops.matching_crossentropy(*float64(*problem), weight, reduction)
    np.testing.assert_allclose(value, pair_weight * expected, rtol=1e-5)


def test_a_pair_must_weigh_something():
    with pytest.raises(ValueError, match="`pair_weight` must be above 0; received 0"):
        losses.MatchingCrossentropy(pair_weight=0)


def test_pseudo_positives_are_what_looks_at_least_as_similar_as_the_match(problem):
    labels = losses.with_pseudo_positives(*problem)
    np.testing.assert_array_equal(labels, loops.relabelled(*problem))
    assert np.any(np.asarray(labels) != problem[0])


@pytest.mark.parametrize("mining", ["sum", "hardest", "semi_hard"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_triplet_ranking(problem, mining, reduction):
    value = losses.TripletRanking(0.2, mining, reduction)(*problem)
    expected = loops.triplet_ranking(*float64(*problem), 0.2, mining, reduction)
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_info_nce(problem):
    expected = loops.info_nce(*float64(*problem))
    np.testing.assert_allclose(losses.InfoNCE()(*problem), expected, rtol=1e-5)


@pytest.mark.parametrize("temperature", [0.01, 0.5])
def test_smooth_average_precision(problem, temperature):
    value = losses.SmoothAveragePrecision(temperature)(*problem)
    expected = loops.average_precision(*float64(*problem), temperature)
    np.testing.assert_allclose(value, expected, rtol=1e-5)


# Sizes around a block of `soft_ranks`: one item, part of a block, an odd and an even
# number of blocks, with and without padding.
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 8), (8, 16), (17, 24), (9, 32)])
def test_semantic_precision(shape):
    semantics, logits = RNG.normal(size=(2, *shape)).astype("float32")
    value = losses.SemanticPrecision(0.2)(semantics, logits)
    expected = loops.semantic_precision(
        *float64(semantics, logits), lambda row, i: loops.soft_rank(row, i, 0.2)
    )
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)


def test_semantic_precision_tends_to_hard_ranks():
    semantics, logits = RNG.normal(size=(2, 7, 12)).astype("float32")
    expected = loops.semantic_precision(*float64(semantics, logits), loops.hard_rank)
    errors = [
        abs(float(losses.SemanticPrecision(temperature)(semantics, logits)) - expected)
        for temperature in (0.1, 0.01, 0.001, 1e-5)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6


def test_smooth_average_precision_tends_to_average_precision():
    matches, logits = loops.random_problem(RNG, 6, 18)
    expected = loops.hard_average_precision(matches, logits)
    value = losses.SmoothAveragePrecision(1e-5)(matches, logits)
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_kl_to_standard_normal_is_tfps():
    import tensorflow_probability as tfp

    mean, log_variance = RNG.normal(size=(2, 6, 9)).astype("float32")
    value = losses.kl_to_standard_normal({"mean": mean, "log_variance": log_variance})
    normal = tfp.distributions.MultivariateNormalDiag
    tfps = normal(mean, np.exp(0.5 * log_variance)).kl_divergence(normal(0 * mean, 0 * mean + 1))
    np.testing.assert_allclose(value, tfps, rtol=1e-5)


def test_uniformity():
    points = 0.5 * RNG.normal(size=(9, 6)).astype("float32")
    expected = loops.uniformity(points.astype("float64"))
    np.testing.assert_allclose(losses.uniformity(points), expected, rtol=1e-5)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("gamma", [0.5, 0.05])
def test_maximum_mean_discrepancy(gamma, squared):
    x, y = RNG.normal(size=(5, 6)).astype("float32"), RNG.normal(size=(8, 6)).astype("float32")
    value = losses.maximum_mean_discrepancy(x, y, gamma, squared)
    expected = loops.maximum_mean_discrepancy(*float64(x, y), gamma, squared)
    np.testing.assert_allclose(value, expected, rtol=1e-4)


def test_maximum_mean_discrepancy_of_sets_leaves_padding_out():
    images = {"elements": RNG.normal(size=(3, 4, 5)).astype("float32")}
    captions = {"elements": RNG.normal(size=(4, 3, 5)).astype("float32")}
    captions["mask"] = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], bool)
    value = losses.maximum_mean_discrepancy(images, captions)
    valid = captions["elements"][captions["mask"]]
    expected = loops.maximum_mean_discrepancy(
        *float64(images["elements"].reshape(-1, 5), valid), 0.5, True
    )
    np.testing.assert_allclose(value, expected, rtol=1e-4)


def test_diversity():
    slots = RNG.normal(size=(5, 4, 6)).astype("float32")
    expected = loops.diversity(slots.astype("float64"))
    np.testing.assert_allclose(losses.diversity(slots), expected, rtol=1e-5)
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1], [1, 0, 0, 1]], bool)
    valid = [item[m] for item, m in zip(slots.astype("float64"), mask, strict=True)]
    value = losses.diversity({"elements": slots, "mask": mask})
    np.testing.assert_allclose(value, loops.diversity(valid), rtol=1e-5)
