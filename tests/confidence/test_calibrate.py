"""Calibrated on the gallery that is asked: what is said is what is right, whatever its size."""

import types

import numpy as np
import pytest

from halo_search.confidence import Confidence, calibrate, calibrate_on
from halo_search.index import Index
from probe_world import DIM, unit, world


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
    assert confidence.names == ("softmax", "z_score", "agreement_5", "agreement_10")
    assert abs(said.mean() - right.mean()) < 0.05
    assert abs(np.mean(ranks <= confidence.first_k(0.1)) - 0.9) < 0.05


def test_a_calibration_of_a_smaller_gallery_is_refused(probes):
    own, queries = probes
    small, large = (Index.build(world(2, size)[0], "cosine") for size in (200, 400))
    confidence = calibrate_on(small, queries, own)
    with pytest.raises(ValueError, match="made on a gallery of 200 items and is not true of one o"):
        large.probability(queries[:3], confidence)
    grown = Index.build(world(2, 208)[0], "cosine")
    assert grown.probability(queries[:3], confidence).shape == (3,)


def test_of_few_probes_all_teach_and_of_many_half(probes):
    own, queries = probes
    index = Index.build(world(2, 400)[0], "cosine")
    taught = [calibrate_on(index, queries[:n], own[:n]).num_queries for n in (200, 400)]
    assert taught == [200, 200]


def test_items_that_are_there_are_their_own_matches():
    items, asked = world(4, 500)
    index = Index.build(items, "cosine")
    confidence = calibrate_on(index, asked, items)
    right = index.search(asked, 1)[1][:, 0] == np.arange(500)
    assert confidence.num_correct == pytest.approx(right.sum() / 2, abs=40)
    assert confidence.in_gallery.matcher is None, "absence was not seen"
    features = confidence.features(index.query_scores(asked))
    assert (confidence.presence(features) == 1).all()


def test_it_is_the_same_after_saving(probes, tmp_path):
    own, queries = probes
    index = Index.build(world(2, 400)[0], "cosine")
    confidence = calibrate_on(index, queries, own, groups=np.arange(800) // 2)
    confidence.save(tmp_path / "c.json")
    again = Confidence.load(tmp_path / "c.json")
    scores = index.query_scores(queries, copies=confidence.copies)
    np.testing.assert_array_equal(again.probability(scores), confidence.probability(scores))
    later = (
        f.later(f.logit(scores), scores.top, scores.mean, scores.variance)
        for f in (again, confidence)
    )
    np.testing.assert_array_equal(*later)
    assert again.first_k(0.2) == confidence.first_k(0.2)
    features = confidence.features(scores)
    np.testing.assert_array_equal(again.presence(features), confidence.presence(features))


def test_absent_questions_are_told_from_present_ones(probes):
    own, queries = probes
    items, asked = world(5, 400)
    index = Index.build(items, "cosine")
    confidence = calibrate_on(index, queries, own)
    present = index.query_scores(asked, copies=confidence.copies)
    absent = index.query_scores(world(6, 400)[1], copies=confidence.copies)
    assert np.mean(confidence.presence(confidence.features(present)) <= 0.05) < 0.09
    assert np.mean(confidence.presence(confidence.features(absent)) <= 0.05) > 0.12


def test_held_out_probes_are_judged_by_fits_that_have_not_seen_them(probes, monkeypatch):
    learnt, told, fit = [], [], calibrate.Logistic.fit

    class Memory:
        """Sure of the rows that it was fitted on, and of no other."""

        def __init__(self, names, rows, *more):
            self.rows = {row.tobytes() for row in rows}

        def logit(self, rows):
            return np.where([row.tobytes() in self.rows for row in rows], 50.0, -50.0)

    def noted(rows, *args, **options):
        learnt.append((fit(rows, *args, **options), rows))
        return learnt[-1][0]

    monkeypatch.setattr(calibrate, "Logistic", types.SimpleNamespace(fit=noted))
    fits = iter([calibrate.fitted])  # of all that teach; then of each part of them
    monkeypatch.setattr(calibrate, "fitted", lambda *given: next(fits, Memory)(*given))
    monkeypatch.setattr(calibrate, "deviation", lambda unseen, *_: told.append(unseen) or 0.1)
    own, queries = probes
    seen = calibrate_on(Index.build(world(2, 400)[0], "cosine"), queries, own).in_gallery
    rows = next(rows for matcher, rows in learnt if matcher is seen.matcher)
    assert len(seen.present)
    assert not np.isin(seen.present, seen.matcher.logit(rows)).any()
    assert told[0].max() < 0.5


def classes(rng, spread, brought=20):
    """Probes of 30 classes, and a function that draws items of 30 others."""
    centres = rng.normal(size=(60, DIM))

    def draw(kinds, count):
        labels = np.repeat(kinds, count)
        return unit(centres[labels] + spread * rng.normal(size=(len(labels), DIM))), labels

    own, own_labels = draw(np.arange(30), brought)
    queries, labels = draw(np.arange(30), 20)
    return (queries, own, labels[:, None] == own_labels), lambda n: draw(np.arange(30, 60), n)


def test_probes_of_classes_bring_as_many_items_as_the_gallery_has(monkeypatch):
    probes, draw = classes(np.random.default_rng(0), 0.9)
    for count in (4, 20, 100):
        (items, item_labels), (asked, asked_labels) = draw(count), draw(20)
        index = Index.build(items, "cosine")
        confidence = calibrate_on(index, *probes)
        right = item_labels[index.search(asked, 1)[1][:, 0]] == asked_labels
        assert abs(index.probability(asked, confidence).mean() - right.mean()) < 0.1
        assert confidence.in_gallery.brought == pytest.approx(count, rel=0.25)
    monkeypatch.setattr("halo_search.confidence.calibrate.kind_size", lambda *_: 2)
    assert calibrate_on(index, *probes).in_gallery.brought == 2


@pytest.mark.parametrize("count", [25, 60])
@pytest.mark.parametrize("spread", [0.9, 1.5])  # of which all own items are seen, and hardly one
def test_a_gallery_may_hold_more_of_a_class_than_probes_bring(spread, count):
    """Twenty answers to a real question may all be of its class, those to a probe eight at most.

    No feature is of a rank that the probes' own items do not reach, and eight own items stand
    before as many strangers as eight of a class have.
    """
    probes, draw = classes(np.random.default_rng(0), spread, brought=8)
    (items, item_labels), (asked, asked_labels) = draw(count), draw(20)
    index = Index.build(items, "cosine")
    confidence = calibrate_on(index, *probes)
    assert "agreement_5" in confidence.names
    assert "agreement_10" not in confidence.names
    assert "softmax" not in confidence.names
    right = item_labels[index.search(asked, 1)[1][:, 0]] == asked_labels
    assert (
        abs(index.probability(asked, confidence).mean() - right.mean()) < 0.12
    )  # .2 to .3 with all strangers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.zeros((19, DIM)), "own": np.zeros((19, DIM))}, "at least 20 probes; rec"),
        ({"own": np.ones((5, DIM))}, "`own` must hold one item a question, 800; received 5"),
        ({"queries": np.full((800, DIM), np.nan)}, "must hold finite numbers"),
        ({"matches": np.zeros((800, 800), bool)}, "must name an own item of every question; row 0"),
    ],
)
def test_bad_probes_are_refused(probes, change, message):
    own, queries = probes
    index = Index.build(world(2, 100)[0], "cosine")
    with pytest.raises(ValueError, match=message):
        calibrate_on(index, **{"queries": queries, "own": own, **change})


@pytest.mark.parametrize("away", [0.0, 50.0])
def test_all_right_and_all_wrong_teach_nothing(away):
    own, items = world(1, 100)[0], world(2, 500)[0]
    queries = own + 0.6 * np.random.default_rng(0).normal(size=own.shape) if away else own
    items = items if not away else np.concatenate([items, unit(queries)])
    index = Index.build(items, "cosine")
    with pytest.raises(ValueError, match=r"find their own item first among .* items: at least 3"):
        calibrate_on(index, queries, own)


def test_the_agreement_is_read_as_far_as_own_items_reach():
    probes, draw = classes(np.random.default_rng(0), 0.9, brought=5)
    names = calibrate_on(Index.build(draw(25)[0], "cosine"), *probes).names
    assert [name for name in names if name.startswith("agreement")] == ["agreement_5"]


def test_in_an_album_probes_of_its_kind_count():
    """Of two kinds of photos a gallery holds one, half of whose questions want something else."""
    rng = np.random.default_rng(0)
    kind = np.arange(1200) % 2
    photos = rng.normal(size=(1200, 8))
    photos[:, 0] += np.where(kind, 1.5, -1.5)
    wrong = (kind == 0) & (rng.random(1200) < 0.5)
    about = np.where(wrong[:, None], photos[rng.permutation(1200) // 2 * 2], photos)
    asked = (about + 0.4 * rng.normal(size=photos.shape)).astype("f4")
    album, probes = np.flatnonzero(kind[:600] == 0), np.arange(600, 1200)
    for gallery in (album, np.arange(600)):
        index = Index.build({"mean": photos[gallery].astype("f4")}, "squared_euclidean")
        confidence = calibrate_on(index, asked[probes], photos[probes])
        said = index.probability(asked[gallery], confidence)
        found = index.search(asked[gallery], len(gallery))[1] == np.arange(len(gallery))[:, None]
        assert abs(said.mean() - found[:, 0].mean()) < 0.05
        shown = found[:, : confidence.first_k(0.3)]  # of half of the album's one is not enough
        assert abs(shown.any(axis=1).mean() - 0.7) < 0.08
        alike = confidence.in_gallery.likeness
        assert (np.median(alike[1::2]) < 0.2 * np.median(alike[::2])) == (gallery is album)
