"""One order everywhere: by score, then by id, so that the first k begin the first K."""

import numpy as np
import pytest

from zoo import similarities as S
from zoo.search import Index

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
