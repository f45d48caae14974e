"""Probes, the scores and moments that they meet, and what is promised of them."""

import sys

import numpy as np
import pytest
from scipy.stats import binom, norm

from halo_search.confidence import (
    GalleryIdentity,
    GalleryMoments,
    Probes,
    QueryScores,
    agreement,
    calibrate_on,
    smallest_k,
)
from halo_search.confidence.scores import copy_threshold
from halo_search.errors import InputError
from halo_search.index import Index
from probe_world import world
from zoo.evaluation.probes import whole_images


def test_images_that_ask_bring_all_their_captions(tmp_path):
    """Of images with five captions each, probes that keep two of them say too little."""
    rng = np.random.default_rng(3)
    images = rng.normal(size=(700, 16))
    owners = np.repeat(np.arange(700), 5)
    captions = images[owners] + 1.2 * rng.normal(size=(3500, 16))
    there, asked = owners < 200, np.arange(200)
    index = Index.build(captions[there], "cosine", side="captions")
    right = np.mean(owners[index.search(images[asked], 1)[1][:, 0]] == asked)
    told = np.flatnonzero(~there)
    some = np.sort(rng.permutation(told)[:1000])
    whole = whole_images(owners, np.arange(200, 700), 600, rng)
    assert len(whole) == 120
    first = told[np.isin(owners[told], whole)]
    kept = np.sort(np.concatenate([first, rng.permutation(np.setdiff1d(told, first))[:400]]))
    said = []
    for rows, marked in ((some, None), (kept, np.isin(np.arange(200, 700), whole))):
        labels = np.arange(200, 700)
        probes = Probes.of(
            images[200:], captions[rows], labels, owners[rows], owners[rows] - 200, whole=marked
        )
        assert not probes.by_class
        probes.save(tmp_path / "probes.npz")
        confidence = Probes.load(tmp_path / "probes.npz").calibrate(index)
        said.append(index.probability(images[asked], confidence).mean())
    assert abs(said[1] - right) <= 0.06
    assert right - said[0] >= 0.05
    assert whole_images(owners, np.arange(200, 210), 600, rng) is None


def test_probes_travel_in_one_file(tmp_path):
    own, queries = world(1, 800)
    labels = np.arange(800)
    made = Probes.of({"mean": own}, {"mean": queries}, labels, labels, labels, source="a test")
    made.save(tmp_path / "probes.npz")
    again = Probes.load(tmp_path / "probes.npz")
    assert again.source == "a test"
    assert not again.by_class
    index = Index.build(world(2, 300)[0], "cosine")
    first, second = (one.calibrate(index) for one in (made, again))
    np.testing.assert_array_equal(first.logistic.weights, second.logistic.weights)
    expected = calibrate_on(index, queries, own).first_k(0.1)
    assert first.first_k(0.1) == pytest.approx(expected, abs=3)
    assert len(again.take(np.arange(5), np.arange(4)).caption_labels) == 4
    rows = {"elements": own[:, None, :4], "mask": np.ones((800, 1), bool)}
    Probes.of(rows, rows, labels, labels, labels).save(tmp_path / "sets.npz")
    kept = Probes.load(tmp_path / "sets.npz").images
    assert (kept["elements"].dtype, kept["mask"].dtype) == (np.float16, bool)
    with pytest.raises(ValueError, match="`direction` must be one of"):
        made.pairs("up")
    (tmp_path / "probes.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"probes\.npz: (holds no probes|cannot be read)"):
        Probes.load(tmp_path / "probes.npz")
    with pytest.raises(InputError, match="no such file"):
        Probes.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="must have labels in common"):
        Probes.of({"mean": own}, {"mean": queries}, labels, labels + 800)
    with pytest.raises(ValueError, match="`image_labels` must be of shape"):
        Probes.of({"mean": own}, {"mean": queries}, labels[1:], labels)


SPLITS, CALIBRATION = 1000, 99


def within_band(failures, error, least):
    """Of 1,000 draws no more than a binomial of `error` has, nor fewer than one of `least`."""
    assert failures <= binom.ppf(1 - 1e-4, SPLITS, error)
    assert failures >= binom.ppf(1e-4, SPLITS, least)


@pytest.mark.parametrize("error", [0.05, 0.1, 0.3])
def test_the_first_k_hold_a_match_as_often_as_promised(error):
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(SPLITS):
        ranks = 1 + np.floor(rng.gamma(0.5, 2000, size=CALIBRATION + 1))  # hardly a tie
        failures += ranks[-1] > smallest_k(ranks[:-1], error)
    within_band(failures, error, error - 1 / (CALIBRATION + 1))


@pytest.mark.parametrize(
    ("count", "error", "expected"),
    [(9, 0.1, 9), (8, 0.1, None), (19, 0.05, 19), (99, 0.3, 70), (29, 0.1, 27), (1, 0.5, 1)],
)
def test_the_quantile_is_exact_at_round_numbers(count, error, expected):
    """0.1 · 10 and 0.3 · 100 are meant to be whole, though no binary number is 0.1."""
    ranks = np.arange(1, count + 1)
    assert smallest_k(ranks, error) == (sys.maxsize if expected is None else expected)
    assert smallest_k(ranks, error, num_items=500) == (501 if expected is None else expected)


@pytest.mark.parametrize("size", [2, 5])
def test_lists_of_groups_hold_as_often_as_promised(size):
    rng, missed = np.random.default_rng(0), []
    for _ in range(1000):
        shared = np.repeat(rng.exponential(size=61), size)
        ranks = 1 + np.floor(20 * shared + rng.exponential(size=len(shared)))
        k = smallest_k(ranks[:-size], 0.1, groups=np.repeat(np.arange(60), size))
        missed.append(np.mean(ranks[-size:] > k))
    assert 0.05 < np.mean(missed) <= 0.1 + 3.7 * np.std(missed) / np.sqrt(1000)


@pytest.mark.parametrize("times", [2, 8])
def test_a_list_grows_with_its_gallery(times):
    """One match a question, and distractors that come later like those that were there."""
    rng, held, plain = np.random.default_rng(times), 0, 0
    for _ in range(600):
        strength = rng.normal(1.0, 1.0, 121)
        old = 1 + rng.binomial(99, norm.sf(strength))
        k = smallest_k(old[:-1], 0.1, num_items=100, grown_to=100 * times)
        new = old[-1] + rng.binomial(100 * (times - 1), norm.sf(strength[-1]))
        held += new <= k
        plain += new <= smallest_k(old[:-1], 0.1, num_items=100)
    assert held / 600 >= 0.9 - 0.03
    assert plain / 600 < 0.88
    assert smallest_k(old, 0.1, 100, grown_to=100) == smallest_k(old, 0.1, 100)
    assert smallest_k(np.full(50, 100), 0.1, 100, grown_to=500) == 501
    with pytest.raises(ValueError, match="`grown_to` needs `num_items`"):
        smallest_k(old, 0.1, grown_to=500)


RNG = np.random.default_rng(0)


def by_loops(answers, centre):
    found = []
    for one in answers:
        one = [(x - centre) / np.linalg.norm(x - centre) for x in one]
        cosines = [one[0] @ other for other in one[1:]]
        found.append([np.mean(cosines[: rank - 1]) for rank in (5, 10) if rank <= len(one)])
    return np.array(found)


@pytest.mark.parametrize("depth", [20, 12, 5])
def test_the_mean_cosine_about_the_centre(depth):
    answers, centre = RNG.normal(size=(7, depth, 6)), RNG.normal(size=6)
    found = agreement(answers, centre)[0]
    np.testing.assert_allclose(found, by_loops(answers, centre), atol=1e-12)
    far = agreement((answers + 100).astype(np.float32), centre + 100)[0]
    np.testing.assert_allclose(far, found, atol=1e-4)


def test_scores_of_rows_know_it():
    rows, vectors = RNG.normal(size=(9, 40)), RNG.normal(size=(40, 6))
    scores = QueryScores.of_matrix(rows, vectors=vectors)
    best = np.argsort(-rows, axis=1)[:, :20]
    np.testing.assert_allclose(
        scores.agreement, by_loops(vectors[best], vectors.mean(axis=0)), atol=1e-12
    )
    both = QueryScores.concatenate([scores.take([0, 2]), scores.take(slice(5, 7))])
    np.testing.assert_array_equal(both.agreement, scores.agreement[[0, 2, 5, 6]])
    without = QueryScores.of_matrix(rows)
    assert QueryScores.concatenate([scores, without]).agreement is None
    assert QueryScores.of_matrix(rows[:, :4], vectors=vectors[:4]).agreement is None
    fewer = QueryScores.concatenate(
        [scores, QueryScores.of_matrix(rows[:, :12], None, vectors[:12])]
    )
    assert fewer.agreement.shape == (18, 2)


def test_one_item_is_no_gallery():
    with pytest.raises(ValueError, match="at least two items; received 1"):
        QueryScores.of_matrix([[0.1, 0.2]], keep=[[True, False]])


def test_the_agreement_passes_over_copies():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(30, 6))
    answers = np.concatenate([gallery[:1], gallery[:1], gallery[:1], gallery[1:30]])[None]
    plain = agreement(gallery[None], gallery.mean(axis=0))[0]
    np.testing.assert_allclose(agreement(answers, gallery.mean(axis=0), 0.999)[0], plain)
    assert (agreement(answers, gallery.mean(axis=0))[0] > plain).all()
    twice = np.repeat(gallery, 2, axis=0)[None]
    np.testing.assert_allclose(agreement(twice, gallery.mean(axis=0), 0.999)[0], plain)
    same = np.repeat(gallery[:1], 20, axis=0)[None]
    np.testing.assert_allclose(agreement(same, gallery.mean(axis=0), 0.999)[0], 0.999)


def test_copies_are_nearer_than_neighbours():
    items = world(0, 500)[0]
    threshold = copy_threshold(np.concatenate([items, items[:50]]))  # some are given twice
    assert 0.3 < threshold < 0.99


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
