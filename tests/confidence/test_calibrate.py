"""Calibrated on the gallery that is asked: what is said is what is right, whatever its size."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from zoo.confidence import (
    Confidence,
    Probes,
    absence_p_values,
    agreement,
    calibrate_on,
    certified_threshold,
    smallest_k,
)
from zoo.confidence.answer_agreement import copy_threshold
from zoo.confidence.kind_size import kind_size
from zoo.confidence.list_length import ListLength
from zoo.errors import InputError
from zoo.evaluation.held_out import whole_images
from zoo.search import Index

DIM = 24


def unit(x):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype("float32")


def world(seed, count, away=0.33):
    """Items, and for each a question that lies more or less near it."""
    rng = np.random.default_rng(seed)
    items = unit(rng.normal(size=(count, DIM)))
    hardness = away * rng.uniform(0.5, 1.5, (count, 1))
    return items, unit(items + hardness * rng.normal(size=items.shape))


@pytest.fixture(scope="module")
def probes():
    return world(1, 800)


def measured(index, items, asked, confidence):
    """`(said, right, ranks)` of questions whose items are the first of the gallery."""
    ids = index.search(asked, len(index))[1]
    ranks = 1 + np.argmax(ids == np.arange(len(asked))[:, None], axis=1)
    return index.probability(asked, confidence), ranks == 1, ranks


@pytest.mark.parametrize("size", [100, 400, 3000])
def test_what_is_said_is_right_in_galleries_of_other_sizes(probes, size):
    own, queries = probes
    items, asked = world(2, size)
    index = Index.build(items, "cosine")
    confidence = calibrate_on(index, queries, own)
    asked = asked[:1000]
    said, right, ranks = measured(index, items, asked, confidence)
    assert abs(said.mean() - right.mean()) < 0.05
    assert abs(np.mean(ranks <= confidence.first_k(0.1)) - 0.9) < 0.05
    lengths = confidence.first_k(0.1, index.query_scores(asked, copies=confidence.copies))
    assert abs(np.mean(ranks <= lengths) - 0.9) < 0.05


def test_a_calibration_of_a_smaller_gallery_is_refused(probes):
    own, queries = probes
    small, large = (Index.build(world(2, size)[0], "cosine") for size in (200, 400))
    confidence = calibrate_on(small, queries, own)
    with pytest.raises(ValueError, match="made on a gallery of 200 items and is not true of one o"):
        large.probability(queries[:3], confidence)
    grown = Index.build(world(2, 208)[0], "cosine")
    assert grown.probability(queries[:3], confidence).shape == (3,)


def test_a_certificate_holds_where_one_of_another_gallery_is_broken():
    """At most 20 % wrong, promised with 90 %: in 30 draws at most 7 may break it."""
    broken = before = 0
    for seed in range(30):
        own, queries = world(100 + seed, 600)
        items, asked = world(200 + seed, 1600)
        small, index = Index.build(own[:200], "cosine"), Index.build(items, "cosine")
        here = calibrate_on(index, queries, own, seed=seed)
        there = calibrate_on(small, queries[200:], own[200:], seed=seed)
        correct = index.search(asked, 1)[1][:, 0] == np.arange(len(asked))
        for confidence in (here, there):
            if confidence.certificate is None or confidence.certificate.threshold is None:
                continue
            scores = index.query_scores(asked, copies=confidence.copies)
            answered = confidence.probability(scores) >= confidence.certificate.threshold
            wrong = 1 - correct[answered].mean() if answered.any() else 0.0
            if confidence is here:
                broken += wrong > 0.2
            else:
                before += wrong > 0.2
    assert broken <= binom.ppf(0.999, 30, 0.1)
    assert before > 15


def test_copies_of_items_do_not_agree_with_one_another(probes):
    """Each item twice or five times: the accuracy stays, and so does what is said."""
    own, queries = probes
    items, asked = world(3, 400)
    for times in (1, 2, 5):
        index = Index.build(np.repeat(items, times, axis=0), "cosine")
        confidence = calibrate_on(index, queries, own)
        right = index.search(asked, 1)[1][:, 0] // times == np.arange(len(asked))
        assert abs(index.probability(asked, confidence).mean() - right.mean()) < 0.06


def test_copies_of_several_matches_are_no_rivals():
    """Images that ask for captions, of which a gallery holds every one several times."""
    rng = np.random.default_rng(5)
    images = rng.normal(size=(900, 16))
    owners = np.repeat(np.arange(900), 5)
    captions = images[owners] + 1.2 * rng.normal(size=(4500, 16))
    matches = owners[None, owners >= 300] == np.arange(300, 900)[:, None]
    said = []
    for times in (1, 2, 3):
        items = np.repeat(captions[owners < 300], times, axis=0)
        index = Index.build(items, "cosine", side="captions")
        confidence = calibrate_on(
            index, images[300:], captions[owners >= 300], matches, matches_in_gallery=5
        )
        assert ("log_gap_20" in confidence.names) == (times == 1)  # which copies fill
        assert ("agreement_10" in confidence.names) == (times < 3)
        said.append(index.probability(images[:300], confidence).mean())
        scores = index.query_scores(images[:300], copies=confidence.copies)
        assert np.median(scores.different) >= 0.9 * 20 / times
    np.testing.assert_allclose(said, said[0], atol=0.02)


def test_items_that_are_there_are_their_own_matches():
    items, asked = world(4, 500)
    index = Index.build(items, "cosine")
    confidence = calibrate_on(index, asked, items)
    right = index.search(asked, 1)[1][:, 0] == np.arange(500)
    assert confidence.num_correct == pytest.approx(right.sum() / 2, abs=40)
    assert not len(confidence.promises.absent)
    with pytest.raises(ValueError, match="absence was not seen"):
        confidence.absence_p_values(index.query_scores(asked))


def test_it_is_the_same_after_saving(probes, tmp_path):
    own, queries = probes
    index = Index.build(world(2, 400)[0], "cosine")
    confidence = calibrate_on(index, queries, own, groups=np.arange(800) // 2)
    confidence.save(tmp_path / "c.json")
    again = Confidence.load(tmp_path / "c.json")
    scores = index.query_scores(queries, copies=confidence.copies)
    np.testing.assert_array_equal(again.probability(scores), confidence.probability(scores))
    np.testing.assert_array_equal(again.first_k(0.1, scores), confidence.first_k(0.1, scores))
    assert again.first_k(0.2) == confidence.first_k(0.2)
    assert again.score_threshold(0.1) == confidence.score_threshold(0.1)
    for name in ("absence_p_values", "presence_p_values"):
        values = getattr(again, name)(scores)
        np.testing.assert_array_equal(values, getattr(confidence, name)(scores))


def test_absent_questions_are_told_from_present_ones(probes):
    own, queries = probes
    items, asked = world(5, 400)
    index = Index.build(items, "cosine")
    confidence = calibrate_on(index, queries, own)
    present = index.query_scores(asked, copies=confidence.copies)
    absent = index.query_scores(world(6, 400)[1], copies=confidence.copies)
    assert np.mean(confidence.absence_p_values(absent) <= 0.1) < 0.15
    assert np.mean(confidence.absence_p_values(present) <= 0.1) > 0.3
    assert np.mean(confidence.presence_p_values(present) <= 0.05) < 0.09
    later = confidence.absence_p_values(absent, num_items=1600)
    assert (later >= confidence.absence_p_values(absent)).all()


@pytest.mark.parametrize("size", [1, 5, 20])
def test_the_size_of_kinds_is_seen(size):
    rng = np.random.default_rng(size)

    def items(kinds, count):
        centres = np.repeat(rng.normal(size=(kinds, DIM)), count, axis=0)
        return unit(centres + 0.4 * rng.normal(size=(kinds * count, DIM)))

    own, labels = items(30, 30), np.repeat(np.arange(30), 30)
    found, error = kind_size(items(40, size), 40 * size, own, labels[:, None] == labels)
    assert found == pytest.approx(size, abs=1 + 0.3 * size)
    assert 0 < error < 1 if size > 1 else error >= 0


def test_where_vectors_do_not_tell_kinds_are_as_large_as_those_of_the_probes():
    """Captions of a class are hardly more alike than others; a kind of one would be a guess."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 20)
    centres = rng.normal(size=(60, DIM))
    own = unit(centres[labels] + 6 * rng.normal(size=(600, DIM)))
    gallery = unit(centres[30 + labels] + 6 * rng.normal(size=(600, DIM)))
    size, error = kind_size(gallery, 5000, own, labels[:, None] == labels)
    assert (size, error) == (20, 1.0)
    assert kind_size(gallery[:5], 5, own, labels[:, None] == labels)[0] <= 5


def test_probes_of_classes_bring_as_many_items_as_the_gallery_has():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, DIM))

    def draw(kinds, count):
        labels = np.repeat(kinds, count)
        return unit(centres[labels] + 0.9 * rng.normal(size=(len(labels), DIM))), labels

    own, own_labels = draw(np.arange(30), 20)
    queries, labels = draw(np.arange(30), 20)
    for count in (4, 20):
        items, item_labels = draw(np.arange(30, 60), count)
        asked, asked_labels = draw(np.arange(30, 60), 20)
        index = Index.build(items, "cosine")
        confidence = calibrate_on(index, queries, own, labels[:, None] == own_labels)
        right = item_labels[index.search(asked, 1)[1][:, 0]] == asked_labels
        assert abs(index.probability(asked, confidence).mean() - right.mean()) < 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.zeros((19, DIM)), "own": np.zeros((19, DIM))}, "at least 20 probes; rec"),
        ({"own": np.ones((5, DIM))}, "`own` must hold one item a question, 800; received 5"),
        ({"own": np.ones((800, 3))}, "`own` must have dimension 24; received 3"),
        ({"queries": np.full((800, DIM), np.nan)}, "must hold finite numbers"),
        ({"groups": np.arange(3)}, r"`groups` must be of shape \(800,\)"),
        ({"matches": np.zeros((800, 800), bool)}, "must name an own item of every question; row 0"),
        ({"matches": np.ones((3, 3), bool)}, r"\(questions, own items\), \(800, 800\)"),
        ({"uncertainty": np.ones(3)}, "`uncertainty` must be of 800 queries"),
        ({"matches_in_gallery": 3}, "`matches_in_gallery` needs `matches`"),
    ],
)
def test_bad_probes_are_refused(probes, change, message):
    own, queries = probes
    index = Index.build(world(2, 100)[0], "cosine")
    with pytest.raises(ValueError, match=message):
        calibrate_on(index, **{"queries": queries, "own": own, **change})


@pytest.mark.parametrize("away", [0.0, 50.0])
def test_all_right_and_all_wrong_teach_nothing(away):
    own, _ = world(1, 100)
    items = world(2, 500)[0]
    queries = own if not away else world(9, 100)[1]
    items = items if not away else np.concatenate([items, unit(queries)])
    index = Index.build(items, "cosine")
    with pytest.raises(ValueError, match=r"find their own item first among .* items: at least 3"):
        calibrate_on(index, queries, own)


def test_an_empty_gallery_is_refused(probes):
    own, queries = probes
    index = Index.build(own[:5], "cosine")
    index.remove(index.ids)
    with pytest.raises(ValueError, match="the index is empty"):
        calibrate_on(index, queries, own)


# Promises of groups, growth and lists, on scores alone.


@pytest.mark.parametrize("size", [2, 5, 10, 50])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_certificates_of_groups_are_broken_no_more_often_than_promised(size, correlation):
    """2,000 draws of 40 groups, whose members are right together or not."""
    rng, broken, draws = np.random.default_rng(size), 0, 2000
    groups = np.repeat(np.arange(40), size)
    common, alone = np.sqrt(correlation), np.sqrt(1 - correlation)
    risk = norm.cdf(-1.0)  # of every answer: a bold threshold at a promise of less
    for _ in range(draws):
        shared = rng.normal(size=40)[groups]
        correct = common * shared + alone * rng.normal(size=len(groups)) > -1.0
        found = certified_threshold(
            np.ones(len(groups)), correct, risk - 1e-6, 0.1, [1.0], groups, seed=0
        )
        broken += found is not None
    assert broken <= binom.ppf(1 - 1e-4, draws, 0.1)


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


@pytest.mark.parametrize("growth", [2, 8])
def test_absence_is_corrected_for_size(growth):
    rng = np.random.default_rng(growth)
    absent = rng.normal(size=(4000, 50)).max(axis=1)
    later = rng.normal(size=(4000, 50 * growth)).max(axis=1)
    wrong = np.mean(absence_p_values(later, absent, growth) <= 0.1)
    assert wrong <= 0.12
    assert np.mean(absence_p_values(later, absent) <= 0.1) > 0.15
    with pytest.raises(ValueError, match="`growth` must be a positive number"):
        absence_p_values(later, absent, 0.0)


def test_a_list_is_as_long_as_the_question_deserves():
    """Over 200 splits: coverage near 90 %, in each tenth of confidence too, and no longer."""
    rng = np.random.default_rng(0)
    confidence = rng.normal(size=4000)
    ranks = 1 + np.floor(np.exp(rng.normal(1.5 - confidence, 1.2)))
    covered, tenths, length, fixed = [], [], [], []
    for _ in range(200):
        order = rng.permutation(4000)
        known, new = order[:1000], order[1000:]
        found = ListLength.fit(ranks[known], confidence[known], np.arange(1000), 0.1, 10_000)
        k = found(confidence[new])
        held = ranks[new] <= k
        covered.append(held.mean())
        parts = np.array_split(np.argsort(confidence[new]), 10)
        tenths.append([held[part].mean() for part in parts])
        length.append(k.mean())
        fixed.append(smallest_k(ranks[known], 0.1))
    assert 0.88 < np.mean(covered) < 0.92
    assert np.mean(tenths, axis=0).min() > 0.8
    assert np.mean(tenths, axis=0).max() < 0.99
    assert np.mean(length) < np.mean(fixed)


def test_few_probes_promise_no_list():
    found = ListLength.fit(np.arange(1, 6), np.arange(5.0), np.arange(5), 0.1, 77)
    np.testing.assert_array_equal(found(np.array([0.0, 9.0])), [77, 77])


def test_the_agreement_passes_over_copies():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(30, 6))
    answers = np.concatenate([gallery[:1], gallery[:1], gallery[:1], gallery[1:30]])[None]
    plain = agreement(gallery[None], gallery.mean(axis=0))
    np.testing.assert_allclose(agreement(answers, gallery.mean(axis=0), 0.999), plain)
    assert (agreement(answers, gallery.mean(axis=0)) > plain).all()
    twice = np.repeat(gallery, 2, axis=0)[None]
    np.testing.assert_allclose(agreement(twice, gallery.mean(axis=0), 0.999), plain)
    same = np.repeat(gallery[:1], 20, axis=0)[None]
    np.testing.assert_allclose(agreement(same, gallery.mean(axis=0), 0.999), 0.999)


@pytest.mark.parametrize("items", [1, 4, 9, 19])
def test_a_small_gallery_is_judged_by_the_ranks_that_it_reaches(items):
    """With its own item it reaches one rank more, of which questions know nothing."""
    own, queries = world(0, 300)
    index = Index.build(own[:items], "cosine")
    confidence = calibrate_on(index, queries[items:], own[items:])
    assert f"log_gap_{items + 1}" not in confidence.names
    assert np.isfinite(index.probability(queries[:20], confidence)).all()


def test_copies_are_nearer_than_neighbours():
    items = world(0, 500)[0]
    threshold = copy_threshold(np.concatenate([items, items[:50]]))  # some are given twice
    assert 0.3 < threshold < 0.99


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
        probes.save(tmp_path / "probes.npz")
        confidence = Probes.load(tmp_path / "probes.npz").calibrate(index)
        said.append(index.probability(images[asked], confidence).mean())
    assert abs(said[1] - right) <= 0.06
    assert right - said[0] >= 0.1
    assert whole_images(owners, np.arange(200, 210), 600, rng) is None


def test_probes_travel_in_one_file(probes, tmp_path):
    own, queries = probes
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
    with pytest.raises(ValueError, match="`direction` must be one of"):
        made.pairs("up")
    (tmp_path / "probes.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"probes\.npz: holds no probes"):
        Probes.load(tmp_path / "probes.npz")
    with pytest.raises(InputError, match="no such file"):
        Probes.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="must have labels in common"):
        Probes.of({"mean": own}, {"mean": queries}, labels, labels + 800)
    with pytest.raises(ValueError, match="`image_labels` must be of shape"):
        Probes.of({"mean": own}, {"mean": queries}, labels[1:], labels)
