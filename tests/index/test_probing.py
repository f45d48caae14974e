"""Probes in front of an index say what an index with their own item in it would say."""

import numpy as np
import pytest

from halo_search.confidence import calibrate_on
from halo_search.embeddings.arrays import take
from halo_search.index import SPACES, Index
from zoo import similarities as S
from zoo.metrics.confidence import expected_calibration_error

DIM, ITEMS, PROBES = 8, 60, 12


def points(rng, count):
    return {"mean": rng.normal(size=(count, DIM)).astype("float32")}


def gaussians(rng, count):
    return {**points(rng, count), "log_variance": rng.normal(-2, 0.3, (count, DIM)).astype("f4")}


def sets(rng, count):
    return {"elements": rng.normal(size=(count, 3, DIM)).astype("float32")}


def masked_sets(rng, count):
    return {**sets(rng, count), "mask": np.arange(3) < rng.integers(1, 4, size=(count, 1))}


def joined(first, second):
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def near(rng, items, away=0.8):
    return {
        name: x
        if name in ("log_variance", "mask")
        else (x + away * rng.normal(size=x.shape)).astype("f4")
        for name, x in items.items()
    }


CASES = [
    (points, S.Cosine, {}),
    (points, S.SquaredEuclidean, {}),
    (gaussians, S.ClosedFormSampledDistance, {}),
    (gaussians, S.Wasserstein2, {}),
    (gaussians, S.ClosedFormSampledDistance, {"candidates_by": "euclidean"}),
    (gaussians, S.KLDivergence, {"candidates": 100}),
    (sets, S.SmoothChamfer, {}),
]


@pytest.mark.parametrize("side", ["images", "captions"])
@pytest.mark.parametrize(("make", "similarity", "options"), CASES)
def test_a_probe_is_as_if_its_own_item_were_there(make, similarity, options, side):
    rng = np.random.default_rng(0)
    gallery, own = make(rng, ITEMS), make(rng, PROBES)
    queries, similarity = near(rng, own), similarity()
    index = Index.build(gallery, similarity, side=side, **options)
    probed = index.probe(queries, own, np.arange(PROBES)[:, None], copies=0.9999)
    before = len(index)
    for row in range(0, PROBES, 3):
        with_own = joined(gallery, take(own, slice(row, row + 1)))
        whole, query = Index.build(with_own, similarity, side=side, **options), slice(row, row + 1)
        expected = whole.query_scores(take(queries, query))
        ids = whole.search(take(queries, query), ITEMS + 1)[1][0]
        np.testing.assert_allclose(probed.scores.top[row], expected.top[0], rtol=1e-5, atol=1e-5)
        for name in ("mean", "variance"):
            found = getattr(probed.scores, name)[row]
            np.testing.assert_allclose(found, getattr(expected, name)[0], rtol=1e-5)
        if expected.agreement is not None:
            np.testing.assert_allclose(probed.scores.agreement[row], expected.agreement[0], 1e-4)
        assert probed.ranks[row] == 1 + np.flatnonzero(ids == ITEMS)[0]
        assert probed.correct[row] == (ids[0] == ITEMS)
    assert len(index) == before


def test_what_is_said_is_right():
    """The items that are asked for are in the index; those of the probes are not."""
    rng = np.random.default_rng(8)
    items = rng.normal(size=(6000, 32)).astype("float32")
    away = rng.uniform(0.3, 2.5, (len(items), 1))
    asked = (items + away * rng.normal(size=items.shape)).astype("float32")
    index = Index.build(items[:4000], "cosine")
    confidence = calibrate_on(index, asked[4000:], items[4000:])
    right = index.search(asked[:4000], 1)[1][:, 0] == np.arange(4000)
    said = index.probability(asked[:4000], confidence)
    assert 0.2 < right.mean() < 0.9
    assert abs(said.mean() - right.mean()) <= 0.03
    assert expected_calibration_error(said, right) <= 0.05


def test_an_own_item_that_is_there_is_not_put_there_twice():
    rng = np.random.default_rng(3)
    own = points(rng, PROBES)
    gallery = joined(points(rng, ITEMS), take(own, slice(0, 4)))
    # In half precision, as probes are kept: a copy is recognised all the same.
    kept = {"mean": own["mean"].astype(np.float16).astype(np.float32)}
    queries = near(rng, own, 0.2)
    index = Index.build(gallery, "cosine")
    probed = index.probe(queries, kept, np.arange(PROBES)[:, None], copies=0.9999)
    np.testing.assert_array_equal(probed.is_there[:, 0], np.arange(PROBES) < 4)
    np.testing.assert_array_equal(probed.scores.size, ITEMS + 4 + (np.arange(PROBES) >= 4))
    np.testing.assert_allclose(probed.scores.top[:4], probed.without.top[:4])
    assert probed.correct[:4].all()


@pytest.mark.parametrize("tied", [False, True])
def test_ranks_far_behind_are_counted_and_of_many_a_random_part(tied):
    rng = np.random.default_rng(4)
    gallery, own, queries = (points(rng, count) for count in (400, 300, 300))
    if tied:  # corners of a cube, none of which is a copy of another
        gallery, own, queries = (
            {"mean": rng.choice([-1.0, 1.0], (len(one["mean"]), 40)).astype("float32")}
            for one in (gallery, own, queries)
        )
    rows = np.arange(300)[:, None]  # that want anything
    probed = Index.build(gallery, "euclidean").probe(queries, own, rows)
    counted = ~np.isnan(probed.ranks)
    assert 40 < counted.sum() < 100
    away = ((queries["mean"][:, None] - gallery["mean"]) ** 2).sum(-1)
    mine = ((queries["mean"] - own["mean"]) ** 2).sum(-1)
    expected = 1 + (away <= mine[:, None]).sum(axis=1)
    far = counted & (expected > (20 if tied else 0))  # before, scores are as a search rounds them
    np.testing.assert_array_equal(probed.ranks[far], expected[far])
    if not tied:
        np.testing.assert_array_equal(probed.correct, expected == 1)


def test_the_random_part_is_as_large_where_most_ranks_are_known():
    rng = np.random.default_rng(9)
    gallery, own = points(rng, 400), points(rng, 600)
    queries = near(rng, own, np.where(np.arange(600) % 5 < 2, 9.0, 0.1)[:, None])
    probed = Index.build(gallery, "euclidean").probe(queries, own, np.arange(600)[:, None])
    assert 0.12 < np.mean(probed.ranks > 20) < 0.25, "of all probes a fifth is counted"


@pytest.mark.parametrize(
    "similarity", ["cosine", "squared_euclidean", S.closed_form_sampled_distance]
)
def test_items_that_score_the_same_are_counted(similarity):
    """Whole numbers, whose scores are exact, and each item three times."""
    rng = np.random.default_rng(11)
    signs = rng.choice([-1.0, 1.0], size=(40, 16)).astype("float32")  # all of length four
    gallery = {"mean": np.tile(signs, (3, 1))}
    queries = {"mean": rng.choice([-1.0, 1.0], size=(9, 16)).astype("float32")}
    if not isinstance(similarity, str):
        gallery["log_variance"] = np.zeros_like(gallery["mean"])
        queries["log_variance"] = np.zeros_like(queries["mean"])
    index = Index.build(gallery, similarity)
    scores = index.search(queries, 60)[0]
    sign = 1.0 if isinstance(similarity, str) else -1.0
    for place in (0, 20, 59):
        least = sign * scores[:, place].astype(float)
        whole = sign * index.search(queries, 120)[0].astype(float)
        expected = (whole >= least[:, None]).sum(axis=1)
        np.testing.assert_array_equal(index.count_at_least(queries, least), expected)


@pytest.mark.parametrize("function", [S.kl_divergence, S.closed_form_sampled_distance])
@pytest.mark.parametrize("side", ["images", "captions"])
def test_pairs_have_the_negative_of_a_distance(function, side):
    rng = np.random.default_rng(14)
    gallery, own, queries = (gaussians(rng, count) for count in (20, 6, 5))
    options = {"candidates": 20} if function is S.kl_divergence else {}
    index = Index.build(gallery, function, side=side, **options)
    found = index.pair_scores(queries, own, np.tile(np.arange(6), (5, 1)))
    pair = (own, queries) if side == "images" else (queries, own)
    expected = np.asarray(function(*pair))
    expected = -expected.T if side == "images" else -expected
    np.testing.assert_allclose(found[np.isfinite(found)], expected[np.isfinite(found)], rtol=1e-4)
    assert np.isfinite(found).mean() > 0.5


@pytest.mark.parametrize("by", ["euclidean", "cosine", "csd"])
def test_pairs_behind_the_last_candidate_are_those_that_a_search_misses(by):
    rng = np.random.default_rng(12)
    gallery, own = gaussians(rng, 100), gaussians(rng, 30)
    queries, rows = near(rng, own, 1.5), np.tile(np.arange(30), (30, 1))
    space = SPACES[by]
    asked, there, mine = space.queries(queries), space.gallery(gallery), space.gallery(own)

    def nearness(items):
        if space.metric == "inner_product":
            return asked @ items.T
        return -((asked[:, None] - items[None]) ** 2).sum(axis=2)

    last = -np.sort(-nearness(there), axis=1)[:, 9]
    index = Index.build(gallery, S.KLDivergence(), candidates=10, candidates_by=by)
    found = np.isfinite(index.pair_scores(queries, own, rows))
    np.testing.assert_array_equal(found, nearness(mine) >= last[:, None])
    assert 0.02 < found.mean() < 0.5


def test_masked_elements_bring_no_pair_among_the_candidates():
    rng = np.random.default_rng(13)
    gallery, own, queries = (masked_sets(rng, count) for count in (80, 30, 25))
    rows = np.tile(np.arange(30), (25, 1))
    found = Index.build(gallery, S.SmoothChamfer(), candidates=5).pair_scores(queries, own, rows)
    there = SPACES["elements"].gallery(gallery)
    for query in range(25):
        asked = SPACES["elements"].gallery(take(queries, slice(query, query + 1)))
        last = -np.sort(-(asked @ there.T), axis=1)[:, 4]
        for item in range(30):
            mine = SPACES["elements"].gallery(take(own, slice(item, item + 1)))
            reached = (asked @ mine.T >= last[:, None]).any()
            assert np.isfinite(found[query, item]) == reached
