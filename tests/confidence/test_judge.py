"""Verdicts and sentences from hand-made calibrations: every number follows by hand."""

import dataclasses
import sys
from itertools import repeat

import numpy as np
import pytest
from scipy.special import expit

from halo_search.confidence import Confidence, Fits, GalleryIdentity, QueryScores
from halo_search.confidence.bank import COLUMNS
from halo_search.confidence.confidence import InGallery
from halo_search.confidence.features import Logistic
from halo_search.confidence.fits import READS, Trial
from halo_search.confidence.judge import (
    ABSENT,
    DOUBTFUL,
    LIKELY,
    NOT_UNDERSTOOD,
    UNSURE,
    Asked,
    Judge,
    Judgement,
    headline,
    list_sentence,
    listing,
)

SIZE = 40
HERE, GROWN = (GalleryIdentity(size, {"dim": 3}) for size in (SIZE, 80))


WEIGHTS = {"score": 2.0, "share": 0.5}  # of short questions


def logistic(*weights, bias=0.0):
    count = len(weights)
    return Logistic(np.zeros(count), np.ones(count), np.array(weights, float), bias)


def confidence(bias=0.0, deviation=0.05, **seen):
    """P(the first is the wanted one) = sigmoid(z-score − 3 + bias)."""
    facts = {
        "size": SIZE,
        "ranks": np.arange(1, 31),
        "groups": np.arange(30),
        "brought": 1.0,
        "ranked": logistic(0.4, -0.5, -0.3, bias=-1.0),
        "matcher": logistic(1.0, bias=-2.5),
        "present": np.linspace(-1, 4, 99),
        "deviation": deviation,
        "num_kinds": 500,
    }
    return Confidence(
        ("z_score",),
        logistic(1.0, bias=bias - 3.0),
        200,
        80,
        HERE,
        in_gallery=InGallery(**{**facts, **seen}),
    )


def fits(**more):
    facts = {
        "sentence": np.array([6.0, 11.0]),
        "second": {"short": logistic(*map(WEIGHTS.get, READS["short"], repeat(0.0)), bias=5.0)},
        "below": {"first": 0.05, "short": 0.3},
    }
    return Fits(**{**facts, **more})


def gallery_of(*bests, size=SIZE):
    """The scores of questions whose best results are given, before others about −4."""
    rows = np.random.default_rng(0).normal(-4, 0.3, (len(bests), size))
    for row, best in zip(rows, bests, strict=True):
        row[: len(best)] = best
    return QueryScores.of_matrix(rows)


SCORES = gallery_of([-1.5, -1.6, -2.0], [-2.1, -2.2], [-1.0, -1.1, -1.1, -1.2, -1.3], [-3.4])
SHORT = np.array([np.nan, np.nan, -2.0, -4.0])
NEAR = np.zeros((4, 20, len(COLUMNS)))
SHARE = COLUMNS.index("share")
NEAR[..., SHARE] = np.array([1.0, 0.5, 3.0, -1.0])[:, None]
ASKED = Asked(prior=SHORT, near=NEAR, in_words=True)


def test_the_probability_of_each_result_by_hand():
    """P = p + (1 − p) ρ, and of short questions what captioned photos and scores tell."""
    judge = Judge(confidence(), fits())
    said = judge(SCORES, asked=ASKED)
    z = (SCORES.top[:, 0] - SCORES.mean) / np.sqrt(SCORES.variance)
    for i, one in enumerate(said):
        odds = z[i] - 3
        behind = (SCORES.top[i, 0] - SCORES.top[i, 1:]) / np.sqrt(SCORES.variance[i])
        rank = np.log(np.arange(2, 21))
        later = expit(0.4 * odds - 0.5 * behind - 0.3 * rank - 1.0)
        own = np.append(expit(odds), later)
        rho = expit(6 * SCORES.top[i] + 11)
        number = fits().number(SCORES.take([i]))[0]
        if np.isnan(SHORT[i]):
            expected = own + (1 - own) * rho
            assert one.wanted == pytest.approx(own[0])
            assert one.number == pytest.approx(number + 1)
        else:
            expected = expit(2 * SCORES.top[i] + 0.5 * NEAR[i, 0, SHARE] + 5)
            assert one.wanted is None  # it wants no single photo
            assert one.number == pytest.approx(number * expected.sum() / rho.sum())
        np.testing.assert_allclose(one.fits, expected, rtol=1e-9)


def test_what_is_shown_is_judged_and_no_more():
    judge = Judge(confidence(), fits())
    whole = judge(SCORES, asked=ASKED)
    few = judge(SCORES, SCORES.top[:, :3], ASKED._replace(near=NEAR[:, :3]))
    one = judge(SCORES, SCORES.top[:, :1], ASKED._replace(near=NEAR[:, :1]))
    for i in range(4):
        np.testing.assert_allclose(few[i].fits, whole[i].fits[:3])
        np.testing.assert_allclose(one[i].fits, whole[i].fits[:1])
        assert few[i].verdict == whole[i].verdict
        assert few[i].wanted == whole[i].wanted
    more = np.concatenate([SCORES.top, SCORES.top[:, -1:] - 1], axis=1)  # deeper than is read
    deep = judge(SCORES, more, ASKED._replace(near=np.concatenate([NEAR, NEAR[:, :1]], axis=1)))
    assert [len(said.fits) for said in deep] == [21] * 4
    assert all(said.fits[-1] <= said.fits[-2] for said in deep)


def test_verdicts_follow_the_first_probability():
    said = Judge(confidence(), fits())(SCORES, asked=ASKED)
    first = [one.fits[0] for one in said]
    assert first[0] > first[1] > 0.5
    assert [one.verdict for one in said] == [LIKELY, LIKELY, LIKELY, ABSENT]
    assert said[3].reason == "It is rare or absent here: no photo is likely to fit."
    assert not any(char.isdigit() for char in said[3].reason)
    later = NEAR.copy()
    later[3, 4, SHARE] = 20.0  # likelier than the first by score: not absent
    said = Judge(confidence(), fits())(SCORES, asked=ASKED._replace(near=later))
    assert (said[3].verdict, said[3].order[0]) == (LIKELY, 4)
    listed = said[3].listed()
    assert listed.fits[0] == said[3].fits[4]
    assert (np.diff(listed.fits) <= 0).all()
    strict = Judge(confidence(), fits(below={"first": 0.8, "short": 0.0}))
    found = strict(SCORES, asked=ASKED)
    assert [one.verdict for one in found] == [LIKELY, ABSENT, LIKELY, UNSURE]
    assert found[1].reason == "No photo here is likely to fit."


def test_likely_is_within_what_is_certified_here():
    p = np.linspace(1, 0, 400)[:, None]
    trial = Trial(SIZE, p, (np.arange(400) < 60)[:, None] * 1.0, 400)
    own = fits(trials=(trial,))
    judge = Judge(confidence(), own, unfit=0.2)
    assert judge.cut.unfit == 0.2
    assert judge.threshold == judge.cut.threshold > 0.7
    scores, asked = (gallery_of(*np.linspace(-2.8, -1, 40)[:, None]), Asked())
    said = judge(scores, asked=asked)
    first = np.array([one.fits[0] for one in said])
    assert ((first > 0.5) & (first < judge.threshold)).any()
    np.testing.assert_array_equal([one.verdict == LIKELY for one in said], first >= judge.threshold)
    # Of another gallery nothing is certified.
    other = Judge(confidence(), own, gallery=GROWN)
    assert other.cut is None
    assert other.threshold == 0.5
    assert Judge(confidence(), own, gallery=HERE).cut is not None


def test_classes_are_judged_by_the_probes_alone():
    judge = Judge(confidence(brought=12.0), by_class=True, noun="photo")
    said = judge(SCORES)
    for one in said:
        assert one.fits[0] == pytest.approx(one.wanted)
        assert one.number == 12
        assert one.reason.endswith("fits." if one.verdict != ABSENT else "is likely to fit.")
        low, high = one.interval
        assert low < one.fits[0] < high
    p = confidence().probability(SCORES)
    assert [one.wanted for one in said] == pytest.approx(list(p))


@pytest.mark.parametrize(
    ("best", "bias", "words"),
    [
        ([-0.9] * 6, 0, "About 7 photos here probably fit, the first among them."),
        ([-0.9] * 4, -9, "About 4 photos here probably fit, the first among them."),
        ([-2.9], 0, "The first photo probably fits."),
        ([-1.95], -9, "The first photo may fit, if what the question describes is here at all."),
        ([-3.3], -9, "The first photo probably does not fit."),
        ([-1.84] * 40, -9, "About 20 photos here may fit, but it is unclear which."),
    ],
)
def test_the_sentence_says_how_many_fit(best, bias, words):
    brought = {"brought": 0.0} if bias else {}
    judge = Judge(confidence(bias, **brought), fits(below={}))
    one = judge(gallery_of(best))[0]
    assert one.reason == words


def test_a_sentence_is_plain_and_follows_the_verdict():
    for bias in np.linspace(-8, 8, 60):
        judge = Judge(confidence(bias=bias), by_class=True)
        one = judge(gallery_of([-3.0, -3.1]))[0]
        if one.verdict == ABSENT:
            continue
        is_likely = one.fits[0] >= 0.5
        assert one.verdict == (LIKELY if is_likely else UNSURE)
        unsure = "It is unclear whether the first photo fits."
        if one.fits[0] < DOUBTFUL:
            unsure = "The first photo probably does not fit."
        assert one.reason == ("The first photo probably fits." if is_likely else unsure)
    short = Judge(confidence(deviation=0.6), fits())(SCORES, asked=ASKED)
    assert [one.interval is None for one in short] == [False, False, True, True]
    nothing = Judge(confidence(deviation=9.0), by_class=True)(gallery_of([-3.0, -3.1]))[0]
    assert nothing.reason.startswith("There are too few examples to say whether")


@pytest.mark.parametrize("scores", [None, SCORES.take(slice(0, 2))])
def test_without_probes_there_is_a_sentence_and_no_number(scores):
    judge = Judge(why_not="the gallery is empty")
    known, lost = judge(scores, asked=Asked(words=[2, 0], unknown=[[], []]), count=2)
    assert known == (None, None, UNSURE, "The gallery is empty.", None, None, None, None)
    assert lost.verdict == NOT_UNDERSTOOD
    assert lost.fits is None
    assert judge.copies is None
    assert judge.threshold == 0.5
    assert not judge.is_same_gallery


def test_what_is_not_understood_has_no_probability():
    asked = ASKED._replace(words=[3, 1, 1, 1], unknown=[[], ["blargh"], [], []])
    said = Judge(confidence(), fits())(SCORES, asked=asked)
    assert said[1].verdict == NOT_UNDERSTOOD
    assert said[1].fits is None
    assert said[1].wanted is None
    assert said[1].reason == "I don't know the word “blargh”."
    assert said[0].verdict == LIKELY


def test_k_is_that_of_the_gallery_that_is_asked():
    here = Judge(confidence(), fits(), gallery=HERE)(SCORES, asked=ASKED)[0].length
    assert here(0.1) == 28  # the 28th of 30 ranks
    assert here(0.01) == sys.maxsize  # 30 probes promise no 99 %
    grown = Judge(confidence(), fits(), gallery=GROWN)(SCORES, asked=ASKED)[0].length
    assert here(0.2) < grown(0.2) < 81
    bare = dataclasses.replace(confidence(), in_gallery=None)
    assert Judge(bare, fits())(SCORES, asked=ASKED)[0].length(0.1) is None


@pytest.mark.parametrize(
    ("verdict", "probability", "wanted", "said"),
    [
        (LIKELY, 0.871, 0.3, "likely 0.87"),
        (UNSURE, None, 0.3, "unsure 0.30"),  # of vectors, where nothing else is known
        (UNSURE, None, None, "unsure (no probability)"),
        (ABSENT, 0.031, None, "nothing matches 0.03"),
        (ABSENT, 0.0, None, "nothing matches 0.00"),
        (NOT_UNDERSTOOD, None, None, "not understood"),
    ],
)
def test_a_number_stands_wherever_a_verdict_does(verdict, probability, wanted, said):
    assert headline(verdict, probability, wanted) == said


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ((0, None), "No photo fits with a probability of 50 % or more."),
        ((1, 0.1), "1 photo fits, with a probability of 90 %."),
        (
            (3, 0.1, 0.8),
            "3 photos fit with a probability of 80 % or more: expect 90 % of the list to fit.",
        ),
    ],
)
def test_what_is_said_of_a_list_is_said_of_its_probabilities(facts, said):
    assert list_sentence("photo", *facts) == said


def test_the_sentence_and_the_list_agree():
    """Where nothing is likely the sentence does not say that something fits."""
    rng = np.random.default_rng(0)
    rows = rng.normal(-4, 0.5, (300, SIZE)) + rng.uniform(0, 2.5, (300, 1))
    said = Judge(confidence(), fits(below={}))(QueryScores.of_matrix(rows))
    few = [one for one in said if one.verdict == UNSURE and not (one.fits >= 0.5).any()]
    assert len(few) > 20
    for one in few:
        assert ("may fit" in one.reason) == (one.fits[0] >= DOUBTFUL)
    for one in said:
        if one.reason == "The first photo probably fits.":
            assert (one.fits >= 0.5).sum() <= 1


def test_the_first_listed_hold_all_of_the_first_by_score():
    order = np.r_[4, 0, 2, 1, 3, 5:25]
    said = Judgement(np.full(25, 0.5), None, UNSURE, "", length=lambda error: error, order=order)
    listed = said.listed()
    assert [listed.length(k) for k in (1, 2, 3, 4, 5, 6, 25, 26)] == [2, 4, 4, 5, 5, 6, 25, 26]
    for k in range(1, 26):
        assert set(range(k)) <= set(order[: listed.length(k)])
    assert listed.length(sys.maxsize) == sys.maxsize
    assert said._replace(length=None).listed().length is None


def test_of_a_word_that_nobody_knows_no_photo_is_told_absent():
    unheard = [[], ["blargh"], [], ["blargh"]]
    said = Judge(confidence(), fits())(SCORES, asked=ASKED._replace(unheard=unheard))
    assert (said[3].verdict, said[3].reason) == (NOT_UNDERSTOOD, "I don't know the word “blargh”.")
    assert said[1].verdict == LIKELY
    assert said[1].reason == (
        "I don't know the word “blargh”; the first photo probably fits the other words."
    )
    assert said[1].interval is None, "nothing tells how far such a question is off"
    assert said[0].interval is not None
    mostly = ASKED._replace(unheard=unheard, words=np.array([3, 1, 3, 3]))
    assert Judge(confidence(), fits())(SCORES, asked=mostly)[1].verdict == NOT_UNDERSTOOD
    half = ASKED._replace(unheard=unheard, words=np.array([3, 2, 3, 3]))
    assert Judge(confidence(), fits())(SCORES, asked=half)[1].verdict == LIKELY


def test_the_first_listed_does_not_depend_on_how_many_are_asked():
    fits = np.r_[0.2, 0.6, np.full(18, 0.1), 0.3, 0.9, 0.5]
    assert listing(fits[:20]).tolist()[:3] == [1, 0, 2]
    assert listing(fits).tolist()[:6] == [1, 21, 22, 20, 0, 2]
    listed = Judgement(fits, None, UNSURE, "", order=listing(fits)).listed()
    assert listed.fits[:4].tolist() == [0.6, 0.6, 0.5, 0.3]


@pytest.mark.parametrize(("showing", "verdict"), [(0.0, ABSENT), (2.0, UNSURE)])
def test_a_short_question_is_refused_by_two_signs(showing, verdict):
    """Its first result does not fit, and nothing near the photos is called so."""
    shown = np.full(4, showing)
    judge = Judge(confidence(), fits())
    said = judge(SCORES, asked=ASKED._replace(showing=shown))
    assert [one.verdict for one in said[2:]] == [LIKELY, verdict]
    alone = judge(SCORES, asked=ASKED)
    assert [one.verdict for one in said[:2]] == [one.verdict for one in alone[:2]]


def test_of_few_items_the_scores_speak_alone():
    """Whatever is asked, the probes find their own items among few others."""
    few = gallery_of([-2.0], [-3.4], size=5)
    said = Judge(confidence(bias=9.0), fits())(few)
    np.testing.assert_allclose([one.fits for one in said], expit(6 * few.top + 11))
    assert [one.wanted for one in said] == [None, None]
    assert [one.verdict for one in said] == [UNSURE, UNSURE]
