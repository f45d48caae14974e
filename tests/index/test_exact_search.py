"""The flat index against the similarity itself, in float64 where rounding matters."""

import faiss
import numpy as np
import pytest

from halo_search.index import SPACES, Index
from zoo import similarities as S


def csd(gallery, queries):
    g, q = (
        {key: np.asarray(value, np.float64) for key, value in side.items()}
        for side in (gallery, queries)
    )
    squared = ((q["mean"][:, None] - g["mean"][None]) ** 2).sum(-1)
    spread = [np.exp(side["log_variance"]).sum(-1) for side in (q, g)]
    return squared + spread[0][:, None] + spread[1][None]


def w2(gallery, queries):
    mean = ((queries["mean"][:, None] - gallery["mean"][None]).astype(float) ** 2).sum(-1)
    g, q = (np.exp(0.5 * side["log_variance"].astype(float)) for side in (gallery, queries))
    return np.sqrt(mean + ((q[:, None] - g[None]) ** 2).sum(-1))


@pytest.mark.parametrize(
    ("function", "oracle"), [(S.closed_form_sampled_distance, csd), (S.wasserstein_2, w2)]
)
@pytest.mark.parametrize("num_queries", [1, 40])
def test_ranks_as_brute_force_does(gaussians, function, oracle, num_queries):
    same_ranking(function, oracle, gaussians(800), gaussians(num_queries))


def same_ranking(function, oracle, gallery, queries):
    count = len(gallery["mean"])
    scores, ids = Index.build(gallery, function).search(queries, count)
    exact = oracle(gallery, queries)
    np.testing.assert_allclose(scores, np.take_along_axis(exact, ids, 1), rtol=2e-6)
    # Rankings are equal wherever neighbours differ by more than float32 can tell.
    truth = np.argsort(exact, axis=1)
    ordered = np.take_along_axis(exact, truth, 1)
    clear = np.diff(ordered, axis=1) > 4e-6 * ordered[:, 1:]
    clear = np.pad(clear, ((0, 0), (1, 0)), constant_values=True)
    clear[:, :-1] &= clear[:, 1:]
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(ids[clear], truth[clear])


LAYERS = [
    S.ClosedFormSampledDistance(scale=3.0, shift=2.0),
    S.Wasserstein2(),
    S.Wasserstein2(squared=True),
    S.Cosine(scale=14.0, learn_scale=True),
    S.EuclideanDistance(scale=2.0, shift=1.0),
    S.SquaredEuclidean(scale=2.0, shift=1.0),
    S.SquaredWasserstein2(scale=2.0, shift=1.0),
    S.cosine,
]


@pytest.mark.parametrize("similarity", LAYERS, ids=lambda s: getattr(s, "name", "function"))
def test_scores_are_the_similaritys_own(gaussians, similarity):
    gallery, queries = gaussians(400), gaussians(20)
    scores, ids = Index.build(gallery, similarity).search(queries, 10)
    logits = np.asarray(similarity(gallery, queries)).T
    np.testing.assert_allclose(
        scores, np.take_along_axis(logits, ids, 1), rtol=1e-4, atol=1e-4 * np.abs(logits).max()
    )
    np.testing.assert_allclose(scores, -np.sort(-logits, axis=1)[:, :10], rtol=1e-3, atol=1e-3)


def test_near_duplicates_far_from_the_origin(rng):
    # ‖a‖² + ‖b‖² − 2ab has an error of about 0.1 here; the distances are near 1e-6.
    centre = 100 * rng.normal(size=64)
    gallery = (centre + 1e-4 * rng.normal(size=(500, 64))).astype("float32")
    query = gallery[:20]
    index = faiss.IndexFlatL2(64)
    index.add(gallery)
    found = Index.build({"mean": gallery}, "euclidean")
    distances, rows = found.search({"mean": query}, 5)
    squared = distances**2  # scores are their negatives
    exact = ((query[:, None].astype(float) - gallery[None].astype(float)) ** 2).sum(-1)
    np.testing.assert_array_equal(rows[:, 0], np.arange(20))
    np.testing.assert_allclose(squared, np.sort(exact, axis=1)[:, :5], rtol=1e-5)
    # What is avoided: FAISS alone cannot tell them apart.
    assert not np.allclose(index.search(query, 5)[0], squared, rtol=0.5, atol=0)


def test_the_extra_coordinate_is_csd_for_any_engine(gaussians):
    gallery, queries = gaussians(100), gaussians(10)
    space = SPACES["csd"]
    vectors, asked = space.gallery(gallery), space.queries(queries)
    assert vectors.shape == (100, 25)
    squared = ((asked[:, None] - vectors[None]) ** 2).sum(-1) + space.offset(queries)[:, None]
    np.testing.assert_allclose(squared, csd(gallery, queries), rtol=1e-5)


def test_sampled_distribution_objects_are_taken(gaussians):
    from zoo.embeddings import distribution

    gallery, queries = gaussians(60), gaussians(3)
    index = Index.build(distribution(gallery), "csd")
    ids = index.search(distribution(queries), 5)[1]
    np.testing.assert_array_equal(ids, Index.build(gallery, "csd").search(queries, 5)[1])
