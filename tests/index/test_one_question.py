"""One question over many items: what a product finds is proven, or computed again pair by pair."""

import faiss
import numpy as np
import pytest

from halo_search.index import Index, exact
from zoo import similarities as S

ITEMS, DIM = 3000, 24  # more than 64 runs, so that few items are sorted
SIMILARITIES = {
    "cosine": S.cosine,
    "euclidean": "euclidean",
    "csd": S.closed_form_sampled_distance,
    "w2": S.wasserstein_2,
}


def gaussians(rng, items):
    log_variance = rng.normal(-3, 0.5, size=(items, DIM)).astype("float32")
    return {
        "mean": rng.normal(size=(items, DIM)).astype("float32"),
        "log_variance": log_variance,
    }


def of_kind(embedding, name):
    return {"mean": embedding["mean"]} if name in ("cosine", "euclidean") else embedding


def some(embedding, rows):
    return {part: values[rows] for part, values in embedding.items()}


def crowded(rng):
    """40 copies of one item, and 200 items that differ from another one by a rounding or two."""
    gallery = gaussians(rng, ITEMS)
    gallery["mean"][1000:1040] = gallery["mean"][5]
    gallery["log_variance"][1000:1040] = gallery["log_variance"][5]
    near = 1 + rng.integers(-2, 3, size=(200, DIM)) * np.finfo(np.float32).eps
    gallery["mean"][2000:2200] = (gallery["mean"][6] * near).astype("float32")
    gallery["log_variance"][2000:2200] = gallery["log_variance"][6]
    return gallery


def same_as_every_pair(index, queries):
    """Single questions are answered as by a search that computes the value of every pair."""
    every = [
        index.search(some(queries, slice(n, n + 1)), len(index))
        for n in range(len(queries["mean"]))
    ]
    for k in (1, 3, 10, 30):
        for number, (scores, ids) in enumerate(every):
            one = index.search(some(queries, slice(number, number + 1)), k)
            np.testing.assert_array_equal(one[1], ids[:, :k])
            np.testing.assert_array_equal(one[0], scores[:, :k])
        together = index.search(queries, k)
        np.testing.assert_array_equal(together[1], np.vstack([ids[:, :k] for _, ids in every]))
        np.testing.assert_array_equal(together[0], np.vstack([s[:, :k] for s, _ in every]))


@pytest.mark.parametrize("name", SIMILARITIES)
def test_copies_and_near_copies_come_in_order(name, rng):
    gallery = crowded(rng)
    queries = {
        part: np.concatenate([values[[5, 6]], gaussians(rng, 4)[part]])
        for part, values in gallery.items()
    }
    ids = rng.permutation(10 * ITEMS)[:ITEMS]
    index = Index.build(of_kind(gallery, name), SIMILARITIES[name], ids=ids)
    queries = of_kind(queries, name)
    same_as_every_pair(index, queries)
    copies = np.sort(ids[[5, *range(1000, 1040)]])
    np.testing.assert_array_equal(index.search(some(queries, slice(1)), 41)[1][0], copies)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_items_that_come_and_go(name, rng):
    gallery, queries = of_kind(crowded(rng), name), of_kind(gaussians(rng, 3), name)
    index = Index.build(gallery, SIMILARITIES[name])
    first = index.search(queries, 5)[1]
    index.remove(np.unique(first))
    same_as_every_pair(index, queries)
    assert not np.isin(index.search(queries, 5)[1], first).any()
    again = index.add(some(gallery, first[:, 0]))
    same_as_every_pair(index, queries)
    for number, item in enumerate(again):
        assert index.search(some(queries, slice(number, number + 1)), 1)[1] == item


@pytest.mark.parametrize("metric", ["l2", "inner_product"])
@pytest.mark.parametrize("size", [1.0, 1e3])
def test_no_value_of_a_product_is_wrong_by_more_than_the_bound(metric, size, rng):
    """Of positive numbers, whose sums grow and round most, and of items that end the last run."""
    for dim in (3, 64, 257, 1024):
        items = (size * rng.random((1003, dim))).astype("float32")
        query = items[:1] + np.float32(1e-3 * size)
        owner = exact.create(metric, dim)
        owner.add_with_ids(items, np.arange(1003))
        flat = exact.flat_of(owner)
        values = exact._product_values(flat, query)
        true = exact.pair_values(
            metric, query.astype(np.float64), items.astype(np.float64), np.arange(1003)[None]
        )
        longest = np.linalg.norm(items, axis=1).max()
        best = exact._optimistic(flat, query, values, longest)
        assert (best <= true).all() if metric == "l2" else (best >= true).all()


def test_a_single_question_leaves_the_threads_of_others_alone(rng, monkeypatch):
    asked, set_threads = [], faiss.omp_set_num_threads
    index = Index.build(gaussians(rng, ITEMS), "csd")
    before = faiss.omp_get_max_threads()
    monkeypatch.setattr(
        faiss, "omp_set_num_threads", lambda count: asked.append(count) or set_threads(count)
    )
    index.search(gaussians(rng, 1), 10)
    assert asked[0] == 1  # a parallel region's threads would spin on every core
    assert faiss.omp_get_max_threads() == before
