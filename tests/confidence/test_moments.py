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


def test_cosine_of_unit_vectors_two_ways(gaussians):
    (gallery, _), (queries, _) = gaussians
    gallery, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (gallery, queries))
    moments, cosine = GalleryMoments.of(gallery), queries @ gallery.T
    agree(moments.inner_product_scores(queries), cosine)
    mean, variance = moments.squared_distance_scores(queries)
    agree((1 + mean / 2, variance / 4), cosine)


@pytest.mark.parametrize("cuts", [[1], [350], [3, 10, 650]])
def test_shards_add_up(gaussians, cuts):
    (gallery, _), (queries, _) = gaussians
    parts = [GalleryMoments.of(part) for part in np.split(gallery, cuts)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.count == ITEMS
    agree(total.squared_distance_scores(queries), -squared(queries, gallery))


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
