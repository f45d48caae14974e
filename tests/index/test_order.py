"""One order everywhere; odd embeddings; a similarity as numbers scores as its layer."""

import json
import warnings

import numpy as np
import pytest

from halo_search.confidence import calibrate_on
from halo_search.index import Index, scoring
from halo_search.index.similarities import BY_NAME, Portable
from zoo import similarities as S

COPIES, ITEMS, DIM = 12, 20, 24  # more copies than the search finds to spare
IDS = np.random.default_rng(3).permutation(1000)[: COPIES * ITEMS]


def points(rng, items):
    return {"mean": rng.normal(size=(items, DIM)).astype("float32")}


def gaussians(rng, items):
    log_variance = rng.normal(-2, 0.5, size=(items, DIM)).astype("float32")
    return {**points(rng, items), "log_variance": log_variance}


def sets(rng, items):
    return {"elements": rng.normal(size=(items, 3, DIM)).astype("float32")}


CASES = {
    "cosine": (points, points, S.Cosine(), {}),
    "cosine function": (points, points, S.cosine, {}),
    "euclidean": (points, points, S.EuclideanDistance(), {}),
    "csd": (gaussians, gaussians, S.closed_form_sampled_distance, {}),
    "csd layer": (gaussians, gaussians, S.ClosedFormSampledDistance(), {}),
    "csd by means": (gaussians, gaussians, S.ClosedFormSampledDistance(), "euclidean"),
    "w2": (gaussians, gaussians, S.wasserstein_2, {}),
    "kl": (gaussians, gaussians, S.KLDivergence(), {}),
    "chamfer": (sets, sets, S.Chamfer(), {}),
}
DIRECT = ("cosine", "cosine function", "euclidean", "csd", "csd layer", "w2")


def doubled(draw, rng):
    """A gallery with every item several times, in any order, and ids in another."""
    items = draw(rng, ITEMS)
    rows = rng.permutation(np.tile(np.arange(ITEMS), COPIES))
    return {name: values[rows] for name, values in items.items()}


def built(name, rng):
    draw, ask, similarity, by = CASES[name]
    gallery = doubled(draw, rng)
    options = {"candidates_by": by} if by else {}
    options |= {} if name in DIRECT else {"candidates": 3 * len(IDS)}
    return gallery, Index.build(gallery, similarity, ids=IDS, **options), ask(rng, 7)


def assert_ordered(scores, ids, ascending):
    keys = scores if ascending else -scores
    np.testing.assert_array_equal(
        np.lexsort((ids, keys), axis=1), np.arange(ids.shape[1])[None] + 0 * ids
    )


def is_ascending(name):
    similarity = CASES[name][2]
    return similarity in (S.closed_form_sampled_distance, S.wasserstein_2)


@pytest.mark.parametrize("name", CASES)
def test_the_first_k_begin_all(name):
    _, index, queries = built(name, np.random.default_rng(0))
    scores, ids = index.search(queries, len(index))
    assert_ordered(scores, ids, is_ascending(name))
    for k in (1, 2, 3, 5, 10, 24, 100):
        some, first = index.search(queries, k)
        np.testing.assert_array_equal(first, ids[:, :k])
        np.testing.assert_array_equal(some, scores[:, :k])
        for row in range(len(ids)):  # one question as among many
            one = {part: values[row : row + 1] for part, values in queries.items()}
            np.testing.assert_array_equal(index.search(one, k)[1], ids[row : row + 1, :k])


def test_scores_that_round_to_one_number_are_ties():
    """A large variance of the question drowns differences of distance."""
    rng = np.random.default_rng(0)
    gallery = gaussians(rng, 300)
    queries = {"mean": gallery["mean"][:3], "log_variance": np.full((3, DIM), 14.0, "float32")}
    index = Index.build(gallery, "csd")
    scores, ids = index.search(queries, 300)
    assert len(np.unique(scores[0])) < 200
    assert_ordered(scores, ids, ascending=False)
    for k in (1, 7, 50):
        np.testing.assert_array_equal(index.search(queries, k)[1], ids[:, :k])


def test_changes_keep_it():
    rng = np.random.default_rng(0)
    gallery, index, queries = built("csd", rng)
    index.remove(IDS[::5])
    index.add({part: values[:20] for part, values in gallery.items()}, ids=range(2000, 2020))
    scores, ids = index.search(queries, len(index))
    assert (ids >= 0).all()
    assert_ordered(scores, ids, ascending=True)
    for k in (1, 3, 24):
        np.testing.assert_array_equal(index.search(queries, k)[1], ids[:, :k])


def test_a_set_in_place_of_points_is_named_with_its_shape():
    points = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match=r"must be a point or .*; received a set of shape \(30, 1"):
        Index.build(points[:, None], "cosine")
    index = Index.build(points, "cosine")
    with pytest.raises(ValueError, match=r"must be a point; received a set of shape \(30, 1, 4\)"):
        index.search(points[:, None], 1)
    with pytest.raises(ValueError, match=r"`own` must be a point; received a set"):
        calibrate_on(index, points, points[:, None])
    gaussians = {"mean": points, "log_variance": points}
    with pytest.raises(ValueError, match=r"`own` must be a Gaussian; received a point"):
        calibrate_on(Index.build(gaussians, "csd"), gaussians, points)


def test_vectors_of_zeros_are_told():
    points = np.random.default_rng(0).normal(size=(30, 4))
    points[7] = 0
    with pytest.warns(
        UserWarning, match="1 of 30 vectors are all zeros, or nearly, the first in row 7"
    ):
        index = Index.build(points, "cosine")
    with pytest.warns(UserWarning, match="`queries`: 1 of 1 vectors are all zeros"):
        assert (index.search(points[7:8], 30)[0] == 0).all()
    with pytest.warns(UserWarning, match="1 of 60 vectors are all zeros"):
        Index.build({"elements": np.stack([points, points + 1], axis=1)}, "smooth_chamfer")
    with warnings.catch_warnings(action="error"):
        Index.build(points, "euclidean").search(points, 1)


def test_pairs_that_do_not_belong_together_are_told():
    points = np.random.default_rng(0).normal(size=(300, 64))
    index = Index.build(points[:100], "cosine")
    with pytest.raises(ValueError, match="no better than chance: 0 of 200 probes"):
        calibrate_on(index, points[100:], np.roll(points[100:], 1, axis=0))


AS_NUMBERS = (
    S.Cosine(scale=7.0),
    S.ClosedFormSampledDistance(scale=2.0, shift=3.0),
    S.Wasserstein2(),
    S.Wasserstein2(squared=True),
    S.SquaredEuclidean(scale=0.5),
    S.EuclideanDistance(),
    S.SquaredWasserstein2(),
    scoring.resolve("cosine"),
    scoring.resolve(S.wasserstein_2),
    scoring.resolve(S.closed_form_sampled_distance),
)


@pytest.mark.parametrize("similarity", AS_NUMBERS, ids=scoring.name_of)
def test_numbers_score_as_the_layer_does(similarity, gaussians, tmp_path):
    gallery, queries = gaussians(60), gaussians(20)
    index = Index.build(gallery, similarity)
    index.save(tmp_path)
    plain = Index.load(tmp_path)
    assert isinstance(plain.similarity, Portable)
    for found, expected in zip(plain.search(queries, 10), index.search(queries, 10), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    for found, expected in zip(
        plain.over_the_gallery(queries), index.over_the_gallery(queries), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert scoring.sign(plain.similarity) == scoring.sign(index.similarity)


def test_the_names_that_need_no_keras_are_the_layers_numbers():
    portable = {name: scoring.portable(S.get(name)) for name in S.NAMES}
    assert {name: one for name, one in portable.items() if one} == BY_NAME


def test_a_similarity_that_ranks_candidates_is_not_portable(gaussians, tmp_path):
    index = Index.build(gaussians(30), S.KLDivergence())
    assert scoring.portable(index.similarity) is None
    index.save(tmp_path)
    assert json.loads((tmp_path / "index.json").read_text())["portable"] is None
    assert isinstance(Index.load(tmp_path).similarity, S.KLDivergence)


def test_saving_again_keeps_the_numbers(gaussians, tmp_path):
    Index.build(gaussians(30), S.Cosine(scale=7.0)).save(tmp_path / "a")
    plain = Index.load(tmp_path / "a")
    plain.add(gaussians(3))
    plain.save(tmp_path / "b")
    again = Index.load(tmp_path / "b")
    assert again.similarity.is_close(scoring.portable(S.Cosine(scale=7.0)))
    assert len(again) == 33
