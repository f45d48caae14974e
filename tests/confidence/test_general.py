"""Probes of other photos: a wider interval, and a few own pairs that move it."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from halo_search.confidence import Probes
from halo_search.confidence.calibrate import ELSEWHERE
from halo_search.confidence.probes import GENERAL, OFF, OFF_WITH_OWN, OWN
from halo_search.index import Index

DIM = 16


def probes_of(count, noise, seed):
    """Photos, and captions that are so vague."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, DIM)).astype("float32")
    captions = images + noise * rng.normal(size=images.shape).astype("float32")
    rows = np.arange(count)
    return Probes.of({"mean": images}, {"mean": captions}, rows, rows, rows)


@pytest.fixture(scope="module")
def worlds():
    """`(index, general probes of clear captions, own ones of vaguer captions)`."""
    own = probes_of(400, 1.6, 0)
    index = Index.build({"mean": np.asarray(own.images["mean"][:200], "float32")}, "cosine")
    clear = probes_of(300, 0.9, 1)
    return index, dataclasses.replace(clear, general=np.ones(300, bool)), own


def said(confidence, index, own):
    asked = {"mean": np.asarray(own.captions["mean"][:200], "float32")}
    probability = index.probability(asked, confidence)
    low, high = confidence.interval(probability)
    return probability.mean(), (high - low).mean()


def test_own_pairs_move_what_is_said_and_narrow_the_interval(worlds):
    index, general, own = worlds
    asked = {"mean": np.asarray(own.captions["mean"][:200], "float32")}
    right = (index.search(asked, 1)[1][:, 0] == np.arange(200)).mean()
    alone, wide = said(general.calibrate(index), index, own)
    few, narrower = said(
        general.beside(own.take(np.arange(200, 260), np.arange(200, 260))).calibrate(index),
        index,
        own,
    )
    assert abs(few - right) < 0.6 * abs(alone - right)
    assert narrower < 0.9 * wide
    _, plain = said(dataclasses.replace(general, general=None).calibrate(index), index, own)
    assert wide > 1.2 * plain


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_the_deviation_is_the_measured_one(worlds, direction):
    index, general, own = worlds
    plain = dataclasses.replace(general, general=None).calibrate(index, direction)
    found = general.calibrate(index, direction)
    expected = np.hypot(plain.in_gallery.deviation, ELSEWHERE[1])
    assert found.in_gallery.deviation == pytest.approx(expected)
    joint = general.beside(own.take(np.arange(210, 240), np.arange(210, 240)))
    assert joint.calibrate(index, direction).in_gallery.deviation < expected


def test_joined_probes_are_kept_whole(worlds, tmp_path):
    _, general, own = worlds
    joint = general.beside(own.take(np.arange(30), np.arange(30)))
    few = general.beside(own.take(np.arange(7), np.arange(7))).note
    assert f" and 30 of your own; with 30 it was off by {OFF_WITH_OWN[0]} on aver" in joint.note
    assert f" and 7 of your own; general photos alone were off by {OFF[0]} on aver" in few
    assert few.endswith(f"by {OFF[1]} at most in 9 of 10.")
    assert general.note.startswith(f"{GENERAL}, which was off by {OFF[0]} on average in trials")
    assert general.note.endswith(f"by {OFF[1]} at most in 9 of 10.")
    assert own.note == ""
    joint.save(tmp_path / "probes.npz")
    again = Probes.load(tmp_path / "probes.npz")
    assert again.note == joint.note
    pairs = again.pairs("t2i")
    assert pairs["matches"].sum(axis=1).tolist() == [1] * 330
    assert len(np.unique(pairs["groups"])) == 330
    some = joint.take(np.arange(290, 310), np.arange(290, 310))
    assert some.general.sum() == 10


def test_probes_of_classes_are_not_joined(worlds):
    own, rows = worlds[2], np.arange(20)
    some = own.take(rows, rows)
    classes = Probes.of(some.images, some.captions, rows // 2, rows // 2, rows)
    for first, second in ((some, classes), (classes, some)):
        with pytest.raises(ValueError, match="of classes are not joined"):
            first.beside(second)


def test_what_general_photos_say_is_lowered_as_trials_have_shown(worlds):
    index, general, _ = worlds
    plain = dataclasses.replace(general, general=None).calibrate(index)
    asked = index.query_scores(general.questions("images"))
    odds = [one.logit(asked) for one in (plain, general.calibrate(index))]
    np.testing.assert_allclose(odds[1] - odds[0], ELSEWHERE[0])


def test_the_numbers_are_those_that_the_study_printed():
    page = (Path(__file__).parents[2] / "docs/results/generic_probes.md").read_text("utf-8")
    assert f"together {ELSEWHERE[0]:+.2f}, deviation {ELSEWHERE[1]:.2f}" in page
    for name, (mean, most) in (("Other photos alone", OFF), (f"With {OWN} own", OFF_WITH_OWN)):
        assert f"{name}: off by {mean:.2f} on average, {most:.2f} at most in 9 of 10" in page
