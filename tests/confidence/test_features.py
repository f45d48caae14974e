"""Features against plain loops, and those of an approximate search against those of full rows."""

import numpy as np
import pytest
from scipy.stats import entropy

from zoo.confidence import GalleryMoments, QueryScores, feature_names, query_features
from zoo.confidence.features import check_names
from zoo.confidence.scores import without_matches

TAU = 0.1


def loops(row, temperature):
    ordered = np.sort(row)[::-1]
    mean, deviation = row.mean(), row.std()
    weights = np.exp((row - row.max()) / temperature)
    log_mean_exp = row.max() / temperature + np.log(weights.mean())
    return [
        ordered[0],
        ordered[0] - mean,
        (ordered[0] - mean) / deviation,
        *(ordered[rank - 1] - mean for rank in (2, 5, 10, 20)),
        *(np.log(ordered[0] - ordered[rank - 1] + deviation / 10) for rank in (2, 5, 10, 20)),
        entropy(weights),
        temperature * log_mean_exp - mean,
    ]


def test_features_are_what_their_table_says(draw):
    """The entropy and the log-sum-exp as far as 20 scores and two moments tell."""
    world = draw(count=200)
    expected = np.array([loops(row, TAU) for row in world.similarity])
    found = query_features(world.similarity, TAU)
    np.testing.assert_allclose(found[:, :-2], expected[:, :-2], atol=1e-10)
    assert np.abs(found[:, -2] - expected[:, -2]).max() < 0.5
    assert np.abs(found[:, -1] - expected[:, -1]).max() < 0.02
    for column in (-2, -1):
        assert np.corrcoef(found[:, column], expected[:, column])[0, 1] > 0.98


def test_all_of_it_is_exact_where_20_scores_are_the_gallery(draw):
    world = draw(count=20, items=20, num_classes=5)
    expected = np.array([loops(row, TAU) for row in world.similarity])
    np.testing.assert_allclose(query_features(world.similarity, TAU), expected, atol=1e-10)


def test_copies_of_the_first_answer_are_no_rivals(draw):
    """A gallery that holds the first answer twice gives the gaps of one that holds it once."""
    world = draw(count=50, items=100)
    best = world.similarity.argmax(axis=1)
    places = np.stack([np.append(np.arange(100), row) for row in best])
    scores = np.take_along_axis(world.similarity, places, axis=1)
    is_copy = np.zeros((50, 20), bool)
    is_copy[:, 1] = True  # of equal scores the last comes second
    top = -np.sort(-scores, axis=1)[:, :20]
    doubled = QueryScores(top, scores.mean(axis=1), scores.var(axis=1), 101, is_copy=is_copy)
    single = -np.sort(-world.similarity, axis=1)[:, :20]
    expected = single[:, [1, 4, 9]]
    np.testing.assert_array_equal(doubled.following[:, :3], expected)
    np.testing.assert_array_equal(doubled.following[:, 3], top[:, -1])  # the last that is seen
    parts = QueryScores.concatenate([doubled.take(slice(0, 20)), doubled.take(slice(20, 50))])
    np.testing.assert_array_equal(parts.following, doubled.following)
    with pytest.raises(ValueError, match="`is_copy` must"):
        QueryScores(top, scores.mean(axis=1), scores.var(axis=1), 101, is_copy=is_copy[:, :3])


def test_equal_scores_have_no_gap():
    found = query_features(np.zeros((3, 25)), 1.0, names=["log_gap_2", "log_gap_20"])
    np.testing.assert_array_equal(found, 0.0)


def test_uncertainty_and_extra_features_are_the_last_columns(draw):
    world = draw(count=20)
    extra = {"distance": np.arange(20.0)}
    names = feature_names(world.similarity, world.difficulty, extra)
    features = query_features(world.similarity, TAU, world.difficulty, extra=extra)
    assert names[-2:] == ("uncertainty", "distance")
    np.testing.assert_array_equal(features[:, -2], world.difficulty)
    np.testing.assert_array_equal(features[:, -1], extra["distance"])
    with pytest.raises(ValueError, match="names of its own"):
        query_features(world.similarity, TAU, extra={"best": extra["distance"]})


@pytest.mark.parametrize("depth", [20, 100])
def test_an_approximate_search_gives_the_same_features(draw, depth):
    world = draw(count=200)
    moments = GalleryMoments.of(world.gallery).squared_distance_scores(world.queries)
    top = -np.sort(-world.similarity, axis=1)[:, :depth]
    found = query_features(QueryScores(top, *moments, len(world.gallery)), TAU)
    np.testing.assert_allclose(found, query_features(world.similarity, TAU), atol=1e-9)


def test_a_normal_gallery_is_summed_in_closed_form():
    """Where the rest is normal, as assumed, sums over it are as good as the sample is large."""
    rows = np.random.default_rng(0).normal(size=(5, 200_000))
    expected = np.array([loops(row, 1.0) for row in rows])
    np.testing.assert_allclose(query_features(rows, 1.0), expected, atol=0.01)


def test_a_small_gallery_has_no_deep_ranks():
    names = feature_names(np.random.default_rng(0).normal(size=(3, 7)))
    assert "rank_5_minus_mean" in names
    assert "rank_10_minus_mean" not in names
    with pytest.raises(ValueError, match="rank_10_minus_mean were expected"):
        query_features(np.eye(3), 1.0, names=("best", "rank_10_minus_mean"))


def test_equal_scores_have_no_z_score():
    features = dict(
        zip(feature_names(np.ones((2, 30))), query_features(np.ones((2, 30)), 1.0).T, strict=True)
    )
    np.testing.assert_array_equal(features["z_score"], 0)
    np.testing.assert_allclose(features["entropy"], np.log(30))
    np.testing.assert_allclose(features["log_mean_exp_minus_mean"], 0, atol=1e-6)


def test_taking_matches_out_is_as_if_they_were_not_there(draw):
    world = draw(count=30)
    found = query_features(without_matches(world.similarity, world.relevance), TAU)
    for query in range(30):
        row = world.similarity[query][~world.relevance[query]]
        np.testing.assert_allclose(found[query, :-2], loops(row, TAU)[:-2], atol=1e-9)
        np.testing.assert_allclose(found[query], query_features(row[None], TAU)[0], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 0)), TAU), "one query and one item"),
        ((np.zeros(5), TAU), r"must be \(queries, items\)"),
        ((np.array([[0.0, np.nan]]), TAU), r"finite; received nan at \(0, 1\)"),
        ((np.array([["a", "b"]]), TAU), "must hold numbers"),
        ((np.zeros((2, 1)), TAU), "two items at least"),
        ((np.zeros((2, 5)), 0.0), "`temperature` must be positive"),
        ((np.zeros((2, 5)), TAU, np.zeros(3)), "`uncertainty` must be of 2 queries; received 3"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        query_features(*arguments)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("best_minus_mean", "must be a list of names; received the text 'best_minus_mean'"),
        (["best", "best_minus_maen"], "received 'best_minus_maen'"),
        (["rank_20_minus_mean"], "received none of them"),
    ],
)
def test_a_name_is_no_part_of_another_and_no_typo_vanishes(names, message):
    with pytest.raises(ValueError, match=message):
        check_names(names, ("best", "best_minus_mean"))
    assert check_names(["best_minus_mean"], ("best", "best_minus_mean")) == ("best_minus_mean",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top": [[1.0, 2.0]]}, "best score first"),
        ({"variance": [-1.0]}, "must not be negative"),
        ({"size": 1}, "at least 2"),
        ({"mean": [1.0, 2.0]}, "must be of 1 queries"),
    ],
)
def test_scores_of_a_search_must_fit(change, message):
    fields = {"top": [[2.0, 1.0]], "mean": [0.0], "variance": [1.0], "size": 10} | change
    with pytest.raises(ValueError, match=message):
        QueryScores(**fields)
