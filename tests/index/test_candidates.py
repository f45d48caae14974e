"""Similarities that rank candidates themselves."""

import numpy as np
import pytest

from halo_search.index import SPACES, Index
from zoo import similarities as S

RANKED = [
    S.KLDivergence(),
    S.MinKLDivergence(),
    S.JeffreysDivergence(),
    S.Bhattacharyya(),
    S.ExpectedLikelihood(),
    S.MatchProbability(4.0, 3.0),
    S.AverageL2(),
    S.kl_divergence,
]


def recall_of(found, truth):
    """Mean share of each row of `truth` that is in the same row of `found`."""
    return np.mean([np.isin(true, own).mean() for true, own in zip(truth, found, strict=True)])


@pytest.mark.parametrize(
    ("similarity", "side"),
    # The first and the last differ by the side.
    [*((one, "images") for one in RANKED), (RANKED[0], "captions"), (RANKED[-1], "captions")],
)
def test_candidates_are_scored_exactly(gaussians, similarity, side):
    gallery, queries = gaussians(150), gaussians(7)
    index = Index.build(gallery, similarity, side=side, candidates=150)
    scores, ids = index.search(queries, 10)
    if side == "images":
        full = np.asarray(similarity(gallery, queries)).T
    else:
        full = np.asarray(similarity(queries, gallery))
    ascending = not hasattr(similarity, "weights")
    best = np.sort(full, axis=1)[:, :10] if ascending else -np.sort(-full, axis=1)[:, :10]
    np.testing.assert_allclose(scores, best, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(scores, np.take_along_axis(full, ids, 1), rtol=1e-3, atol=1e-3)


def test_the_papers_scheme_misses_what_its_candidates_lack(gaussians):
    gallery, queries = gaussians(2000, spread=2.0), gaussians(50)
    truth = Index.build(gallery, S.closed_form_sampled_distance).search(queries, 10)
    scheme = Index.build(gallery, S.closed_form_sampled_distance, candidates_by="euclidean")
    recalls = [
        recall_of(scheme.search(queries, 10, candidates=count)[1], truth[1])
        for count in (10, 30, 2000)
    ]
    assert recalls[0] < 0.9
    assert recalls[0] < recalls[1] <= recalls[2] == 1.0
    scores = scheme.search(queries, 10, candidates=2000)[0]
    np.testing.assert_allclose(scores, truth[0], rtol=1e-5)


@pytest.mark.parametrize("similarity", [S.SmoothChamfer(), S.Chamfer(), S.MaximumPair()])
def test_sets(sets, similarity):
    gallery, queries = sets(600), sets(20)
    index = Index.build(gallery, similarity)
    assert index.faiss.ntotal == 2400
    scores, ids = index.search(queries, 10)
    full = np.asarray(similarity(gallery, queries)).T
    truth = np.argsort(-full, axis=1)[:, :10]
    assert recall_of(ids, truth) >= 0.98
    np.testing.assert_allclose(scores, np.take_along_axis(full, ids, 1), rtol=1e-5)
    assert all(len(set(row)) == 10 for row in ids.tolist())


def test_masked_elements_are_not_found(sets, rng):
    gallery, queries = sets(50), sets(5)
    gallery["mask"] = np.arange(4) < rng.integers(1, 5, size=(50, 1))
    queries["mask"] = np.ones((5, 4), bool)
    index = Index.build(gallery, S.SmoothChamfer(), candidates=200)
    assert index.faiss.ntotal == gallery["mask"].sum()
    ids = index.search(queries, 5)[1]
    full = np.asarray(S.SmoothChamfer()(gallery, queries)).T
    np.testing.assert_array_equal(ids, np.argsort(-full, axis=1)[:, :5])


def test_the_vector_of_a_set_is_the_mean_of_the_elements_that_count(sets, rng):
    gallery = sets(20)
    gallery["mask"] = np.arange(4) < rng.integers(1, 5, size=(20, 1))
    found = SPACES["elements"].item_vectors(gallery)
    for row in range(20):
        elements = gallery["elements"][row][gallery["mask"][row]]
        directions = elements / np.linalg.norm(elements, axis=1, keepdims=True)
        np.testing.assert_allclose(found[row], directions.mean(axis=0), rtol=1e-5)


def test_queries_with_fewer_elements(sets, rng):
    gallery, queries = sets(50), sets(3)
    queries["mask"] = np.array([[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]], bool)
    index = Index.build(gallery, S.MaximumPair(), candidates=50)
    full = np.asarray(S.MaximumPair()(gallery, queries)).T
    ids = index.search(queries, 4)[1]
    np.testing.assert_array_equal(ids, np.argsort(-full, axis=1)[:, :4])
