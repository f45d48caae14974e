"""Calibrated on the gallery that is asked: what is said is what is right, whatever its size."""

import numpy as np
import pytest
from scipy.stats import binom

from probe_world import DIM, unit, world
from zoo.confidence import Confidence, calibrate_on
from zoo.confidence.kind_size import kind_size
from zoo.search import Index


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


def test_all_probes_tell_how_often_answers_are_right(monkeypatch):
    """Half of them teach the weights; the certificate, which the others gave, answers the same."""
    items, asked = world(7, 300, away=0.25)
    index = Index.build(items, "cosine")
    with monkeypatch.context() as patched:
        patched.setattr("zoo.confidence.calibrate._moved", lambda confidence, *_: confidence)
        of_half = calibrate_on(index, asked, items)
    of_all = calibrate_on(index, asked, items)
    right = np.mean(index.search(asked, 1)[1][:, 0] == np.arange(300))
    said = [index.probability(asked, confidence) for confidence in (of_half, of_all)]
    assert abs(said[0].mean() - right) > 0.01
    assert abs(said[1].mean() - right) < 1e-3
    answered = [
        values >= confidence.certificate.threshold
        for values, confidence in zip(said, (of_half, of_all), strict=True)
    ]
    assert 0 < answered[0].sum() < 300
    assert (answered[0] != answered[1]).sum() <= 1  # on the threshold itself rounding decides


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
    of_a_sample = kind_size(gallery, 5000, own, labels[:, None] == labels, num_kinds=30)
    assert of_a_sample == (round(5000 / 30), 1.0)
    assert kind_size(gallery[:5], 5, own, labels[:, None] == labels)[0] <= 5


def test_probes_of_classes_bring_as_many_items_as_the_gallery_has():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, DIM))

    def draw(kinds, count):
        labels = np.repeat(kinds, count)
        return unit(centres[labels] + 0.9 * rng.normal(size=(len(labels), DIM))), labels

    own, own_labels = draw(np.arange(30), 20)
    queries, labels = draw(np.arange(30), 20)
    for count in (4, 20, 100):
        items, item_labels = draw(np.arange(30, 60), count)
        asked, asked_labels = draw(np.arange(30, 60), 20)
        index = Index.build(items, "cosine")
        confidence = calibrate_on(index, queries, own, labels[:, None] == own_labels)
        right = item_labels[index.search(asked, 1)[1][:, 0]] == asked_labels
        assert abs(index.probability(asked, confidence).mean() - right.mean()) < 0.1
        # What is brought beyond the half tells what there is beyond all.
        few = own_labels[None] == labels[:, None]
        few &= np.arange(len(own)) % 20 < 5
        told = calibrate_on(index, queries, own, few, matches_in_gallery=count)
        brought = calibrate_on(index, queries, own, few, matches_in_gallery=min(count, 5))
        said, less = (index.probability(asked, one).mean() for one in (told, brought))
        assert abs(said - right.mean()) < 0.12
        assert (less < said - 0.04) == (count > 5)


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


@pytest.mark.parametrize("items", [1, 4, 9, 19])
def test_a_small_gallery_is_judged_by_the_ranks_that_it_reaches(items):
    """With its own item it reaches one rank more, of which questions know nothing."""
    own, queries = world(0, 300)
    index = Index.build(own[:items], "cosine")
    confidence = calibrate_on(index, queries[items:], own[items:])
    assert f"log_gap_{items + 1}" not in confidence.names
    assert np.isfinite(index.probability(queries[:20], confidence)).all()
