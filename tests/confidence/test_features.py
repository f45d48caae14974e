"""Features against plain loops, and those of an approximate search; the regression on them."""

import numpy as np
import pytest
from scipy.special import expit

from halo_search.confidence import (
    GalleryMoments,
    QueryScores,
    feature_names,
    features,
    query_features,
)
from halo_search.confidence.features import Logistic, softmax_odds, temperature_of

PLAIN = ("best_minus_mean", "softmax", "z_score", "log_gap_2")


def loops(row):
    ordered = np.sort(row)[::-1]
    mean, deviation = row.mean(), row.std()
    return [
        ordered[0] - mean,
        (ordered[0] - mean) / deviation,
        np.log(ordered[0] - ordered[1] + deviation / 10),
    ]


def odds_of(row, temperature):
    """The log odds of the best score by a softmax, at most 12."""
    others = np.exp((np.sort(row)[:-1] - row.max()) / temperature).sum()
    return min(-np.log(others), 12.0)


@pytest.mark.parametrize("items", [2, 12, 20])
def test_the_softmax_of_a_small_gallery_is_exact(draw, items):
    world = draw(count=50, items=items)
    found = softmax_odds(QueryScores.of_matrix(world.similarity), 0.1)
    expected = [odds_of(row, 0.1) for row in world.similarity]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_one_item_has_no_rival():
    scores = QueryScores(np.array([[-3.0]]), np.array([-3.0]), np.zeros(1), 1)
    assert softmax_odds(scores, 0.1) == [12.0]


def test_features_are_what_their_table_says(draw):
    world = draw(count=200)
    expected = np.array([loops(row) for row in world.similarity])
    found = QueryScores.of_matrix(world.similarity, vectors=world.gallery)
    assert feature_names(found) == (*PLAIN, "agreement_5", "agreement_10")
    features = query_features(found)
    np.testing.assert_allclose(features[:, [0, 2, 3]], expected, atol=1e-10)
    np.testing.assert_array_equal(features[:, 4:], found.agreement)
    # Scores beyond the best 20 are taken for a normal distribution.
    softmax = [odds_of(row, temperature_of(found)) for row in world.similarity]
    np.testing.assert_allclose(features[:, 1], softmax, atol=0.3)
    assert np.corrcoef(features[:, 1], softmax)[0, 1] > 0.99
    assert feature_names(world.similarity) == PLAIN
    chosen = query_features(found, names=["agreement_10", "z_score"])
    np.testing.assert_array_equal(chosen, features[:, [5, 2]])


def test_copies_of_the_first_answer_are_no_rivals(draw):
    """A gallery that holds the first answer twice gives the gap of one that holds it once."""
    world = draw(count=50, items=100)
    best = world.similarity.argmax(axis=1)
    places = np.stack([np.append(np.arange(100), row) for row in best])
    scores = np.take_along_axis(world.similarity, places, axis=1)
    is_copy = np.zeros((50, 20), bool)
    is_copy[:, 1] = True  # of equal scores the last comes second
    top = -np.sort(-scores, axis=1)[:, :20]
    doubled = QueryScores(top, scores.mean(axis=1), scores.var(axis=1), 101, is_copy=is_copy)
    single = -np.sort(-world.similarity, axis=1)[:, :20]
    np.testing.assert_array_equal(doubled.second, single[:, 1])
    np.testing.assert_array_equal(doubled.different, 19)
    plain = QueryScores(top, scores.mean(axis=1), scores.var(axis=1), 101)
    np.testing.assert_array_equal(plain.second, top[:, 0])
    parts = QueryScores.concatenate([doubled.take(slice(0, 20)), doubled.take(slice(20, 50))])
    np.testing.assert_array_equal(parts.second, doubled.second)


def test_copies_take_no_probability_of_a_softmax(draw):
    world = draw(count=50, items=12)
    top = -np.sort(-world.similarity, axis=1)
    twice = np.concatenate([top[:, :1], top], axis=1)
    is_copy = np.zeros((50, 13), bool)
    is_copy[:, 1] = True
    doubled = QueryScores(twice, twice.mean(axis=1), twice.var(axis=1), 13, is_copy=is_copy)
    expected = [odds_of(row, 0.1) for row in top]
    np.testing.assert_allclose(softmax_odds(doubled, 0.1), expected, atol=1e-6)


@pytest.mark.parametrize("depth", [20, 100])
def test_an_approximate_search_gives_the_same_features(draw, depth):
    world = draw(count=200)
    moments = GalleryMoments.of(world.gallery).squared_distance_scores(world.queries)
    top = -np.sort(-world.similarity, axis=1)[:, :depth]
    found = query_features(QueryScores(top, *moments, len(world.gallery)))
    np.testing.assert_allclose(found, query_features(world.similarity), atol=1e-9)


def test_taking_matches_out_is_as_if_they_were_not_there(draw):
    world = draw(count=30)
    found = query_features(QueryScores.of_matrix(world.similarity, ~world.relevance))
    for query in range(30):
        row = world.similarity[query][~world.relevance[query]]
        np.testing.assert_allclose(found[query, [0, 2, 3]], loops(row), atol=1e-9)


def loss_of(x, truth, penalty, share):
    """The penalised loss as a function of weights and bias."""

    def loss(weights, bias):
        p = expit(x @ weights + bias)
        likelihood = truth * np.log(p) + (1 - truth) * np.log1p(-p)
        return -(share @ likelihood) + 0.5 * penalty * weights @ weights

    return loss


@pytest.mark.parametrize("soft", [False, True])
def test_the_regression_finds_the_minimum(soft):
    """Each step away from it costs, of booleans and of probabilities, with unequal weights."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 0]
    chance = expit(x[:, 0] - 0.2 * (x[:, 1] - 5))
    truth = chance if soft else (rng.random(300) < chance).astype(float)
    weights = rng.uniform(0.2, 3, 300)
    found = Logistic.fit(x, truth, 0.01, weights=weights)
    z = (x - found.centre) / found.spread
    loss = loss_of(z, truth, 0.01, weights / weights.sum())
    best = loss(found.weights, found.bias)
    for step in np.eye(5) * 1e-3:
        for sign in (1, -1):
            assert loss(found.weights + sign * step[:4], found.bias + sign * step[4]) > best


def test_signs_hold_and_the_others_make_up_for_them():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 3))
    truth = rng.random(500) < expit(-1.0 * x[:, 0] + 2 * x[:, 1] + x[:, 2])
    signs = [1, 1, -1]
    found = Logistic.fit(x, truth, 0.01, signs)
    free = Logistic.fit(x, truth, 0.01)
    assert free.weights[0] < -0.5
    assert free.weights[2] > 0.5
    np.testing.assert_allclose(found.weights[[0, 2]], 0, atol=1e-6)
    only = Logistic.fit(x[:, 1:2], truth, 0.01)
    assert found.weights[1] == pytest.approx(only.weights[0], abs=1e-4)
    np.testing.assert_array_equal(
        Logistic.fit(x, truth, 0.01, [-1, 1, 1]).weights, free.weights
    )  # which break none


@pytest.mark.parametrize("seed", range(40))
def test_signs_give_the_minimum_of_scipys_bounds(seed):
    """Of features that lie nearly in a plane, so that weights exchange their places."""
    rng = np.random.default_rng(seed)
    count, width = rng.integers(40, 300), rng.integers(2, 8)
    plane = rng.normal(size=(count, 2)) @ rng.normal(size=(2, width))
    x = np.c_[plane + 0.3 * rng.normal(size=(count, width)), np.ones(count)]
    truth = (rng.random(count) < expit(x[:, :-1] @ rng.normal(size=width))).astype(float)
    share, start = np.full(count, 1 / count), np.zeros(width + 1)
    ridge = np.append(np.full(width, 10.0 ** rng.uniform(-4, -1)), 0.0)
    signs = rng.choice([-1, 1], width)
    free = features._newton(x, truth, share, ridge, start)
    found = features._with_signs(x, truth, share, ridge, start, free, signs)
    assert (np.append(signs, 0) * found >= 0).all()
    expected = features._by_bounds(x, truth, share, ridge, start, np.append(signs, 0))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_what_the_bias_lacks_makes_the_mean_true():
    rng = np.random.default_rng(2)
    x, correct = rng.normal(size=(200, 2)), rng.random(200) < 0.3
    weights = rng.uniform(0.5, 2, 200)
    found = Logistic.fit(x, rng.random(200) < 0.8, 0.01)
    shift = found.missing_bias(x, correct, weights)
    moved = expit(found.logit(x) + shift)
    assert moved @ weights == pytest.approx(correct @ weights)


def test_a_constant_feature_counts_for_nothing_and_separable_truths_are_finite():
    x = np.stack([np.arange(40.0), np.full(40, 7.0)], axis=1)
    found = Logistic.fit(x, np.arange(40) >= 20, 0.01)
    assert np.isfinite(found.weights).all()
    assert found.weights[1] == 0
    assert found.probability(x[-1]) > 0.95
