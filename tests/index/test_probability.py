"""What an index says of a query as a whole: equal to full score rows, after every change."""

import numpy as np
import pytest

from halo_search.confidence import Confidence, QueryScores
from halo_search.embeddings.arrays import take
from halo_search.index import Index, storage
from halo_search.index import index as index_file
from zoo import similarities as S
from zoo.evaluation.gallery import item_vectors


def full(gallery, queries, similarity, sign=1.0):
    """From the whole matrix, queries by rows."""
    rows = sign * np.asarray(similarity(gallery, queries), float).T
    return QueryScores.of_matrix(rows, vectors=item_vectors(gallery, similarity))


def assert_same(found, expected, rtol=2e-4):
    scale = float(np.sqrt(expected.variance.max()))
    np.testing.assert_array_equal(found.size, expected.size)
    np.testing.assert_allclose(found.top, expected.top, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=10 * rtol)
    np.testing.assert_allclose(found.agreement, expected.agreement, atol=10 * rtol)


SIMILARITIES = [
    S.ClosedFormSampledDistance(scale=3.0, shift=1.0),
    S.Cosine(scale=7.0),
    S.SquaredEuclidean(),
    S.SquaredWasserstein2(),
    S.Wasserstein2(squared=True),
    S.EuclideanDistance(),  # a root: no line in FAISS' value
    S.Wasserstein2(),
    S.KLDivergence(),
]


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_same_as_full_rows(gaussians, similarity):
    gallery, queries = gaussians(400), gaussians(30)
    index = Index.build(gallery, similarity)
    if not isinstance(similarity, S.KLDivergence):
        assert_same(index.query_scores(queries), full(gallery, queries, similarity))
        return
    found = index.query_scores(queries, *index.search(queries, 20, candidates=400))
    assert_same(found, full(gallery, queries, similarity))


def test_sets_and_distances_and_the_papers_way(gaussians, sets, monkeypatch):
    gallery, queries = sets(60), sets(10)
    index = Index.build(gallery, S.SmoothChamfer(), side="images")
    assert_same(index.query_scores(queries), full(gallery, queries, S.SmoothChamfer()))
    monkeypatch.setattr(index_file, "CHUNK", 7)
    assert Index.build(gallery, S.SmoothChamfer(), side="images").vector_moments.count == 60
    monkeypatch.undo()
    with pytest.raises(ValueError, match="do not follow from moments"):
        _ = index.moments
    gallery, queries = gaussians(300), gaussians(20)
    for name, quantity in (("closed_form_sampled_distance", 1), ("wasserstein_2", 1)):
        similarity = getattr(S, name)
        expected = full(gallery, queries, similarity, sign=-quantity)
        assert_same(Index.build(gallery, similarity).query_scores(queries), expected)
    similarity = S.ClosedFormSampledDistance()
    index = Index.build(gallery, similarity, candidates_by="euclidean", candidates=300)
    assert_same(index.query_scores(queries), full(gallery, queries, similarity))
    captions = Index.build(gallery, S.KLDivergence(), side="captions", candidates=300)
    rows = np.asarray(S.KLDivergence()(queries, gallery), float)
    expected = QueryScores.of_matrix(rows, vectors=item_vectors(gallery, S.KLDivergence()))
    assert_same(captions.query_scores(queries), expected)


@pytest.mark.parametrize("similarity", [S.ClosedFormSampledDistance(), S.Wasserstein2()])
def test_after_adding_removing_and_saving(gaussians, tmp_path, similarity):
    gallery, queries = gaussians(300), gaussians(20)
    index = Index.build(take(gallery, slice(0, 200)), similarity)
    assert index.moments.count == 200  # known before anything changes
    index.add(take(gallery, slice(200, 300)))
    assert index.moments.count == 300
    index.remove(np.arange(0, 90, 3))
    kept = np.setdiff1d(np.arange(300), np.arange(0, 90, 3))
    fresh = Index.build(take(gallery, kept), similarity)
    np.testing.assert_allclose(index.moments.mean, fresh.moments.mean, rtol=1e-5)
    np.testing.assert_allclose(index.moments.scatter, fresh.moments.scatter, rtol=1e-3, atol=1e-2)
    found = index.search(queries, 25)
    before = index.query_scores(queries, *found)
    assert_same(before, full(take(gallery, kept), queries, similarity), rtol=1e-3)
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    assert loaded.moments.count == 270
    assert list(tmp_path.glob(f"index/*/{storage.MOMENTS_FILE}")), "they are not taken again"
    after = loaded.query_scores(queries, *found)
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.agreement, before.agreement)
    assert index.query_scores(queries, found[0]).agreement is None  # of unknown answers


def test_a_calibration_on_full_rows_is_the_same_before_an_index(gaussians):
    gallery, queries = gaussians(300), gaussians(200)
    similarity = S.ClosedFormSampledDistance()
    rows = np.asarray(similarity(gallery, queries), float).T
    correct = rows.argmax(axis=1) % 3 > 0
    whole = QueryScores.of_matrix(rows, vectors=item_vectors(gallery, similarity))
    index = Index.build(gallery, similarity)
    for expected in (whole, rows):  # with the agreement of answers, and without
        confidence = Confidence.fit(expected, correct)
        assert ("agreement_10" in confidence.names) == (expected is whole)
        found = index.probability(queries, confidence)
        np.testing.assert_allclose(found, confidence.probability(expected), atol=2e-3)
        scores, ids = index.search(queries, 30)
        again = index.probability(queries, confidence, scores=scores, ids=ids)
        np.testing.assert_array_equal(again, found)


def test_what_does_not_fit_is_refused(gaussians):
    gallery, queries = gaussians(100), gaussians(5)
    index = Index.build(gallery, S.ClosedFormSampledDistance())
    with pytest.raises(ValueError, match=r"best 20 of each query; received shape \(5, 7\)"):
        index.query_scores(queries, index.search(queries, 7)[0])
    scores = np.full((5, 30), np.nan)
    with pytest.raises(ValueError, match="with 100 missing"):
        index.query_scores(queries, scores)
    few = Index.build(take(gallery, slice(8)), S.ClosedFormSampledDistance())
    assert few.query_scores(queries).top.shape == (5, 8)
    assert few.query_scores(queries).agreement.shape == (5, 1)  # of the best five
    assert Index.build(take(gallery, slice(4)), "csd").query_scores(queries).agreement is None
    empty = Index.build(take(gallery, slice(1)), S.ClosedFormSampledDistance())
    empty.remove([0])
    with pytest.raises(ValueError, match="the index is empty"):
        empty.query_scores(queries)
    with pytest.raises(ValueError, match="the index is empty"):
        _ = empty.moments
