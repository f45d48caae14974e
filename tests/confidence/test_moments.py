"""Closed-form mean and variance of scores against the full scan, in every search space."""

import numpy as np
import pytest

from zoo.confidence import GalleryIdentity, GalleryMoments

DIM, ITEMS, QUERIES = 12, 700, 40


@pytest.fixture
def gaussians():
    def side(count, seed):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(count, DIM)), np.exp(rng.normal(-1, 0.5, size=(count, DIM)))

    return side(ITEMS, 1), side(QUERIES, 2)


def agree(found, scores, tolerance=1e-10):
    mean, variance = found
    np.testing.assert_allclose(mean, scores.mean(axis=1), atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(variance, scores.var(axis=1), atol=tolerance, rtol=tolerance)


def squared(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


def test_csd_is_a_squared_distance_of_one_more_coordinate(gaussians):
    (gallery, gallery_var), (queries, query_var) = gaussians
    csd = squared(queries, gallery) + query_var.sum(1)[:, None] + gallery_var.sum(1)[None]
    vectors = np.concatenate([gallery, np.sqrt(gallery_var.sum(1, keepdims=True))], axis=1)
    asked = np.concatenate([queries, np.zeros((QUERIES, 1))], axis=1)
    mean, variance = GalleryMoments.of(vectors).squared_distance_scores(asked)
    agree((mean - query_var.sum(1), variance), -csd)


def test_wasserstein_is_a_squared_distance_of_means_and_deviations(gaussians):
    (gallery, gallery_var), (queries, query_var) = gaussians
    w2 = squared(queries, gallery) + squared(np.sqrt(query_var), np.sqrt(gallery_var))
    vectors = np.concatenate([gallery, np.sqrt(gallery_var)], axis=1)
    asked = np.concatenate([queries, np.sqrt(query_var)], axis=1)
    agree(GalleryMoments.of(vectors).squared_distance_scores(asked), -w2)


def test_cosine_of_unit_vectors_two_ways(gaussians):
    (gallery, _), (queries, _) = gaussians
    gallery, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (gallery, queries))
    moments, cosine = GalleryMoments.of(gallery), queries @ gallery.T
    agree(moments.inner_product_scores(queries), cosine)
    mean, variance = moments.squared_distance_scores(queries)
    agree((1 + mean / 2, variance / 4), cosine)


def test_a_far_gallery_loses_few_digits(gaussians):
    (gallery, _), (queries, _) = gaussians
    moments = GalleryMoments.of(gallery + 100.0)
    agree(moments.squared_distance_scores(queries + 100.0), -squared(queries, gallery), 1e-7)


@pytest.mark.parametrize("cuts", [[1], [350], [3, 10, 650]])
def test_shards_add_up(gaussians, cuts):
    (gallery, _), (queries, _) = gaussians
    parts = [GalleryMoments.of(part) for part in np.split(gallery, cuts)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.count == ITEMS
    agree(total.squared_distance_scores(queries), -squared(queries, gallery))


def test_blocks_of_a_large_gallery_add_up():
    gallery = np.random.default_rng(0).normal(size=(9000, 3))
    queries = gallery[:10]
    agree(GalleryMoments.of(gallery).squared_distance_scores(queries), -squared(queries, gallery))


def test_arrays_and_summary(gaussians):
    (gallery, _), (queries, _) = gaussians
    moments = GalleryMoments.of(gallery)
    again = GalleryMoments(**moments.arrays())
    np.testing.assert_array_equal(
        again.squared_distance_scores(queries), moments.squared_distance_scores(queries)
    )
    summary = moments.summary()
    assert summary["dim"] == DIM
    np.testing.assert_allclose(summary["total_variance"], gallery.var(axis=0).sum())
    np.testing.assert_allclose(summary["mean_squared_norm"], (gallery**2).sum(1).mean())
    np.testing.assert_allclose(summary["deviation_of_squared_norm"], (gallery**2).sum(1).std())


def test_one_item_has_no_variance():
    mean, variance = GalleryMoments.of(np.ones((1, 3))).squared_distance_scores(np.zeros((2, 3)))
    np.testing.assert_allclose(mean, -3)
    np.testing.assert_array_equal(variance, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GalleryMoments.of(np.zeros(3)), "at least one of each"),
        (lambda: GalleryMoments.of(np.zeros((0, 3))), "at least one of each"),
        (lambda: GalleryMoments.of([[np.inf, 0.0]]), "NaN or infinities"),
        (lambda: GalleryMoments(1, np.zeros(3), np.zeros((2, 2))), "`mean` and `scatter`"),
        (
            lambda: GalleryMoments.of(np.eye(3)).squared_distance_scores(np.eye(2)),
            r"must be \(queries, 3\)",
        ),
        (
            lambda: GalleryMoments.of(np.eye(3)).inner_product_scores([[np.nan] * 3]),
            "NaN or infinities",
        ),
        (lambda: GalleryMoments.of(np.eye(3)) + GalleryMoments.of(np.eye(2)), "same dimension"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_gallery_is_known_by_its_vectors_in_any_order(draw):
    def identity(vectors):
        return GalleryIdentity(len(vectors), GalleryMoments.of(vectors).summary())

    gallery = draw(seed=0).gallery
    own = identity(gallery)
    order = np.random.default_rng(0).permutation(len(gallery))
    assert own.is_same(identity(gallery[order]))
    assert own.is_same(identity(gallery.astype(np.float32)))
    assert not own.is_same(identity(gallery[1:]))
    assert not own.is_same(identity(draw(world_seed=1).gallery))
    assert not own.is_same(identity(gallery[:, :5]))
    assert not own.is_same(GalleryIdentity(400, {}))
