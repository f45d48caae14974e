"""Whether results fit: ρ by hand, its sum over a gallery, certified cut-offs, second opinions."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit, logit

from halo_search.confidence import Fits, QueryScores
from halo_search.confidence.bank import COLUMNS
from halo_search.confidence.features import Logistic
from halo_search.confidence.fits import READS, Strangers, Trial, opinion_features, prior_of, priors
from halo_search.confidence.judge import Asked
from halo_search.confidence.senses import spelled
from halo_search.confidence.words import CaptionBank

SENTENCE = np.array([6.0, 11.0])


def fits(**more):
    return Fits(SENTENCE, **more)


@pytest.mark.parametrize("size", [25, 300, 4000])
@pytest.mark.parametrize("shape", ["normal", "skewed", "two groups"])
def test_the_number_is_the_sum_over_the_whole_gallery(size, shape):
    rng = np.random.default_rng(size)
    away = {
        "normal": lambda s: rng.normal(size=s),
        "skewed": lambda s: rng.gumbel(size=s) / 1.3,
        "two groups": lambda s: rng.normal(size=s) + 1.5 * (rng.random(s) < 0.3),
    }[shape]
    rows = -2.6 + 0.35 * rng.normal(size=(60, 1)) + 0.4 * away((60, size))
    exact = fits().others(rows).sum(axis=1)
    np.testing.assert_allclose(fits().others(rows), expit(6 * rows + 11), rtol=1e-14)
    found = fits().number(QueryScores.of_matrix(rows))
    assert exact.max() > 3 * exact.min()
    assert found.sum() == pytest.approx(exact.sum(), rel=0.1)
    np.testing.assert_allclose(found, exact, rtol=0.4, atol=0.3)
    if size == 25:
        np.testing.assert_allclose(found, exact, rtol=0.1)


def test_the_number_of_a_gallery_that_is_seen_whole_is_exact():
    rng = np.random.default_rng(0)
    for size in (2, 7, 20):
        rows = rng.normal(-2, 0.5, (30, size))
        found = fits().number(QueryScores.of_matrix(rows))
        np.testing.assert_allclose(found, expit(6 * rows + 11).sum(axis=1), rtol=1e-12)
    tied = np.full((3, 500), -1.9)
    found = fits().number(QueryScores.of_matrix(tied))
    np.testing.assert_allclose(found, 500 * expit(6 * -1.9 + 11), rtol=0.01)


def world(rng, count, size=300, told=0.0):
    """A `Trial` of questions, some of which fit more than others for all that is said of them."""
    strength = rng.normal(-0.5, 1.0, (count, 1))
    odds = np.sort(strength + rng.normal(0, 1.2, (count, 10)) - np.arange(10) / 4, axis=1)[:, ::-1]
    common = rng.normal(0, 0.8, (count, 1))  # which makes one question's results alike
    fit = (rng.random((count, 10)) < expit(odds + common)) * 1.0
    return Trial(size, expit(odds + told), fit, count)


@pytest.mark.parametrize("unfit", [0.3, 0.2])
@pytest.mark.parametrize("told", [0.0, 0.7])  # what is said is true, or too high
def test_a_certificate_is_broken_as_rarely_as_promised(unfit, told):
    """Over 200 splits the pooled share of what the next gallery shows; and it is not idle."""
    rng = np.random.default_rng(0)
    every, broken, answered = world(rng, 20_000, told=told), [], []
    for _ in range(200):
        chosen = rng.choice(20_000, 400, replace=False)
        trial = Trial(300, every.probability[chosen], every.fit[chosen], 400)
        found = fits(trials=(trial,)).cut(unfit, 300)
        if found is None:
            broken.append(False)
            continue
        shown = every.probability >= found.threshold
        asked = rng.choice(20_000, 250, replace=False)  # the questions to the next gallery
        broken.append((1 - every.fit[asked][shown[asked]]).mean() > unfit)
        answered.append(found.answered - shown.any(axis=1).mean())
        assert found[0] == unfit
    assert np.mean(broken) <= 0.1
    assert len(answered) > 30
    assert abs(np.mean(answered)) < 0.03


def test_the_cut_is_of_the_nearest_size_or_of_none():
    rng = np.random.default_rng(1)
    trials = tuple(world(rng, 2000, size) for size in (100, 500))
    found = fits(trials=trials)
    assert found.cut(0.4, 120).size == 100
    assert found.cut(0.4, 400).size == 500
    assert found.cut(0.4, 200).size == 100
    assert found.cut(0.4, 40) is None
    assert found.cut(0.4, 1001) is None
    assert fits().cut(0.4, 100) is None
    strict, loose = (found.cut(share, 100) for share in (0.3, 0.45))
    assert strict.threshold > loose.threshold
    assert strict.answered < loose.answered
    nothing = Trial(100, trials[0].probability, np.zeros_like(trials[0].fit), 600)
    assert fits(trials=(nothing,)).cut(0.3, 100) is None
    whole = Trial(100, trials[0].probability, np.ones_like(trials[0].fit), 600)
    assert fits(trials=(whole,)).cut(0.3, 100).answered == 1
    for bad in (0, 1, "0.3", np.nan):
        with pytest.raises(ValueError, match="`unfit` must be a number between 0 and 1"):
            found.cut(bad, 100)


def test_what_fits_is_learnt_of_photos_like_the_gallery_s():
    """Of two kinds of photos one fits four times as often as the other at the same score."""
    score, item = np.linspace(-3, -1, 400).astype("f4"), np.arange(400) % 20
    fit = expit(6 * score + 11 + np.where(item < 10, 1.5, -1.5)).astype("f4")
    known = fits(strangers=Strangers(score, item, fit, 20))
    high, low = (known.near(np.where(np.arange(20) < 10, 1.0, w)) for w in (1e-9, 1e9))
    assert [one.sentence[1] for one in (high, low)] == pytest.approx([12.5, 9.5], abs=0.01)
    assert high.sentence[0] == known.sentence[0]
    learnt = dataclasses.replace(known, below={"first": 0.2, "short": 0.1})
    assert learnt.near(np.ones(20)).below == learnt.below
    assert learnt.near(np.arange(20) < 2).below == {"short": 0.1}  # of one kind
    for likeness in (None, np.ones(19)):  # of other probes
        assert known.near(likeness) is known


def test_what_the_second_opinion_reads_by_hand():
    rows = np.array([[3.0, 1.0, 1.0, -5.0], [2.0, 2.0, 0.0, 0.0]])
    scores, plain = QueryScores.of_matrix(rows), np.array([[0.9, 0.5, 0.5, 0.0]] * 2)
    near = np.arange(2 * 4 * len(COLUMNS), dtype=float).reshape(2, 4, -1)
    asked = Asked(prior=np.array([np.nan, -3.0]), near=near)
    found = opinion_features(plain, scores, scores.top, asked)
    for i, row in enumerate(rows):
        best = np.sort(row)[::-1]
        np.testing.assert_allclose(found["z_score"][i], (best - row.mean()) / row.std())
        for name in ("gap_5", "gap_20"):  # of four items both are the same
            np.testing.assert_allclose(found[name][i], best[0] - best[1:].mean())
        np.testing.assert_allclose(found["rank"][i], np.log([1, 2, 3, 4]))
    np.testing.assert_allclose(found["odds"][:, :3], logit(plain[:, :3]))
    assert np.isfinite(found["odds"]).all()
    np.testing.assert_allclose(found["size"], np.log(4))
    np.testing.assert_array_equal(found["prior"][:, 0], [0, -3])
    np.testing.assert_array_equal(found[COLUMNS[2]], near[..., 2])
    np.testing.assert_array_equal(found["score"], scores.top)
    assert set().union(*READS.values()) <= found.keys()


def test_each_kind_of_question_has_its_own_second_opinion():
    rows = np.random.default_rng(0).normal(size=(3, 30))
    scores, short = QueryScores.of_matrix(rows), np.array([False, True, False])
    near = np.zeros((3, 20, len(COLUMNS)))
    asked = Asked(prior=np.where(short, -2.0, np.nan), near=near)
    plain = np.full((3, 20), 0.5)
    second = {
        kind: Logistic(*(f(len(names)) for f in (np.zeros, np.ones, np.zeros)), bias)
        for (kind, names), bias in zip(list(READS.items())[:3], (1.0, 2.0, 3.0), strict=True)
    }
    said = fits(second=second).opinion(plain, scores, scores.top, asked, short)
    expected = expit(np.where(short[:, None], 3.0, np.r_[1.0, np.full(19, 2.0)]))
    np.testing.assert_allclose(said, expected)
    bounded = fits(second=second, most=0.8).opinion(plain, scores, scores.top, asked, short)
    np.testing.assert_allclose(bounded, np.minimum(expected, 0.8))
    # Without captioned photos, and without a second opinion, it is what the scores say.
    without = asked._replace(near=None)
    for one in (fits(second=second), fits()):
        said = one.opinion(plain, scores, scores.top, without, short)
        np.testing.assert_array_equal(said, plain)


def test_the_prior_is_of_the_photos_that_hold_all_stems():
    captions = ["A dog runs", "Two dogs and a cat", "A cat sleeps", "A red dog", "snow", "snow"]
    bank = CaptionBank.of(captions, [0, 1, 2, 3, 4, 4], least=1)
    texts = ["dog", "a dog and a cat", "cats", "zebra", "a dog runs after a red cat"]
    found = priors(texts, [spelled(text) for text in texts], bank)
    expected = [(3, 5), (1, 5), (2, 5), (0, 5)]
    np.testing.assert_allclose(found[:4], [logit((k + 0.25) / (n + 0.5)) for k, n in expected])
    assert np.isnan(found[4])  # a sentence
    np.testing.assert_array_equal(prior_of([3, 1], 5), found[:2])
    assert np.isfinite(prior_of([0, 5], 5)).all()
    assert priors([], [], bank).shape == (0,)
    either = priors(["cat"], [[frozenset(["cat", "dog"])]], bank)
    np.testing.assert_array_equal(either, prior_of([4], 5))
