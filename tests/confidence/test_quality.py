"""nAUC, calibration error and their table by hand; and the check for other queries."""

import numpy as np
import pytest
from scipy.stats import binom

from zoo.confidence import (
    Confidence,
    GalleryIdentity,
    GalleryMoments,
    abstention_auc,
    candidate_thresholds,
    certified_threshold,
    confidence_quality,
    expected_calibration_error,
    reliability,
)
from zoo.confidence.monitor import Reference

RISK = 0.2


def released(confidence, correct):
    """MTEB's abstention curves, as it computes them."""
    rates = np.linspace(0, 1, 11)[:-1]

    def curve(scores):
        order = np.argsort(scores)
        drop = [min(round(rate * len(order)), len(order) - 1) for rate in rates]
        return np.array([correct[order[d:]].mean() for d in drop])

    def area(values):
        return np.trapezoid(values, rates)

    flat = area(np.full(10, correct.mean()))
    return (area(curve(confidence)) - flat) / (area(curve(correct.astype(float))) - flat)


# At 15, 35, 45 and 55 a tenth of the queries ends in a half, which MTEB rounds to even numbers.
@pytest.mark.parametrize("count", [15, 35, 37, 45, 55, 100, 1003])
def test_it_is_mtebs(count):
    rng = np.random.default_rng(count)
    confidence = rng.permutation(count) / count
    correct = rng.random(count) < confidence
    expected = released(confidence, correct)
    np.testing.assert_allclose(abstention_auc(confidence, correct), expected, atol=1e-12)


def test_its_scale():
    rng = np.random.default_rng(0)
    correct = rng.random(20_000) < 0.4
    assert abstention_auc(correct, correct) == pytest.approx(1)
    assert abstention_auc(np.zeros(20_000), correct) == pytest.approx(0, abs=1e-12)
    assert abs(abstention_auc(rng.random(20_000), correct)) < 0.02
    assert abstention_auc(~correct, correct) < -0.5
    assert np.isnan(abstention_auc([0.1, 0.2], [True, True]))
    assert np.isnan(abstention_auc([0.1, 0.2], [False, False]))


def test_equal_confidences_are_taken_in_every_order():
    rng = np.random.default_rng(1)
    confidence, correct = rng.integers(0, 4, 200), rng.random(200) < 0.5
    noisy = [abstention_auc(confidence + 1e-6 * rng.random(200), correct) for _ in range(400)]
    deviation = np.std(noisy) / 20
    assert abs(abstention_auc(confidence, correct) - np.mean(noisy)) < 4 * deviation


def test_calibration_error_by_hand():
    probability = [0.1, 0.2, 0.8, 0.9]
    correct = [False, True, True, True]
    assert expected_calibration_error(probability, correct, 2) == pytest.approx((0.35 + 0.15) / 2)
    diagram = reliability(probability, correct, 2)
    np.testing.assert_allclose(diagram["probability"], [0.15, 0.85])
    np.testing.assert_allclose(diagram["accuracy"], [0.5, 1.0])
    np.testing.assert_array_equal(diagram["count"], [2, 2])
    assert expected_calibration_error([1.0, 0.0], [True, False]) == 0


def test_the_table_of_a_true_probability():
    rng = np.random.default_rng(2)
    probability = rng.random(5000)
    quality = confidence_quality(probability, rng.random(5000) < probability)
    assert quality["spearman_of_bins"] < -0.97
    assert quality["calibration_error"] < 0.03
    assert 0.4 < quality["nauc"] < 1
    assert quality["oracle_aurc"] < quality["aurc"] < quality["random_aurc"]
    assert "calibration_error" not in confidence_quality(-probability, probability > 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: abstention_auc([0.5, np.nan], [True, False]), "`confidence` must be finite"),
        (lambda: abstention_auc([0.5], [True, False]), "must be of 1 queries; received 2"),
        (lambda: abstention_auc([], []), "one value a query"),
        (lambda: expected_calibration_error([1.2], [True]), r"must be in \[0, 1\]"),
        (lambda: expected_calibration_error([0.2], [True], 0), "`bins` must be at least 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.fixture(scope="module")
def fitted(draw):
    world = draw(seed=0)
    return Confidence.fit(
        world.similarity,
        world.correct,
        gallery=GalleryIdentity.of(world.gallery),
        queries=world.queries,
    )


def test_the_same_kind_of_queries_passes(draw, fitted):
    new = draw(seed=1)
    verdict = fitted.check(
        new.similarity, gallery=GalleryIdentity.of(new.gallery), queries=new.queries
    )
    assert verdict.holds
    assert "600 queries" in verdict.sentence
    assert verdict.sentence.endswith("probabilities and guarantees hold.")
    assert fitted.check(new.similarity).sentence.endswith("hold, if the gallery is the same.")


def test_it_is_refused_no_more_often_than_its_level(draw, fitted):
    """Fresh queries of one distribution, the same calibration: in the mean over calibrations."""
    refused = 0
    for seed in range(40):
        world, new = draw(seed=100 + seed, count=200), draw(seed=200 + seed, count=100)
        confidence = Confidence.fit(world.similarity, world.correct, queries=world.queries)
        refused += not confidence.check(new.similarity, queries=new.queries, level=0.05).holds
    assert refused <= 6  # of 40 at 5 %: more has a chance of 0.003


@pytest.mark.slow
def test_it_refuses_where_the_promise_breaks(draw):
    """Calibrated on half of the classes, asked about the others: at least 95 % of broken promises.

    A promise is broken if of what the certified threshold answers more than it allows is wrong.
    """
    broken, refused = 0, 0
    for number in range(30):
        classes = np.random.default_rng(number).permutation(40)
        options = {"num_classes": 40, "world_seed": number}
        known = draw(seed=1, count=900, classes=classes[:20], **options)
        other = draw(seed=2, count=800, classes=classes[20:], **options)
        confidence = Confidence.fit(
            known.similarity[:450], known.correct[:450], queries=known.queries[:450]
        )
        surety = confidence.probability(known.similarity)
        threshold = certified_threshold(
            surety[450:], known.correct[450:], RISK, 0.1, candidate_thresholds(surety[:450])
        )
        if threshold is None:
            continue
        answered = confidence.probability(other.similarity) >= threshold
        if 1 - other.correct[answered].mean() > RISK:
            broken += 1
            some = slice(0, 300)
            verdict = confidence.check(other.similarity[some], queries=other.queries[some])
            refused += not verdict.holds
    assert broken >= 5
    assert refused >= 0.95 * broken


def test_other_queries_are_refused_with_the_feature_that_differs(draw, fitted):
    new = draw(seed=1, classes=[0, 1, 2])
    verdict = fitted.check(new.similarity, queries=new.queries)
    assert verdict.state == "drifted"
    assert not verdict.holds
    assert verdict.p_value < 0.01
    assert verdict.feature in verdict.sentence
    assert "No probability and no guarantee can be promised" in verdict.sentence


def test_another_gallery_is_refused(draw, fitted):
    new = draw(seed=1)
    fewer = GalleryIdentity.of(new.gallery[1:])
    changed = GalleryIdentity.of(draw(world_seed=1).gallery)
    narrow = GalleryIdentity.of(new.gallery[:, :5])
    for gallery, words in (
        (fewer, "it has 399 items, not 400"),
        (changed, "its 400 items are others"),
        (narrow, "its vectors have 5 dimensions"),
    ):
        verdict = fitted.check(new.similarity, gallery=gallery)
        assert verdict.state == "other gallery"
        assert words in verdict.sentence
        assert "Nothing can be promised" in verdict.sentence


def test_a_gallery_in_another_order_is_the_same(draw, fitted):
    new = draw(seed=1)
    order = np.random.default_rng(0).permutation(len(new.gallery))
    verdict = fitted.check(new.similarity, gallery=GalleryIdentity.of(new.gallery[order]))
    assert verdict.state == "holds"


# Fewer dimensions than queries of a half, and more.


@pytest.mark.parametrize("dim", [64, 256, pytest.param(768, marks=pytest.mark.very_slow)])
def test_exchangeable_queries_are_not_refused_for_their_directions(dim):
    """Directions are of one half and the comparison is of the other, at level 0.05."""
    rng, refused, draws = np.random.default_rng(dim), 0, 50 if dim < 100 else 20
    scale = np.linspace(2, 0.1, dim)
    for _ in range(draws):
        queries = scale * rng.normal(size=(800, dim))
        features = rng.normal(size=(800, 2))
        reference = Reference.fit(("a", "b"), features[:400], queries[:400])
        refused += reference.drift_test(features[400:], queries[400:])[0] <= 0.05
    assert refused <= binom.ppf(0.99, draws, 0.05)


@pytest.mark.parametrize("size", [5, 20])
def test_captions_of_one_image_are_no_shift(size):
    """Groups that lie together: one of each is looked at, else a quarter and more are refused."""
    rng, refused = np.random.default_rng(size), np.zeros(2, int)

    def drawn(count):
        shared = np.repeat(rng.normal(size=(count // size, 8)), size, axis=0)
        queries = shared + 0.5 * rng.normal(size=(count, 8))
        similarity = queries @ gallery.T
        return similarity, queries, np.arange(count) // size

    gallery = rng.normal(size=(50, 8))
    for _ in range(60):
        (similarity, asked, groups), (new, queries, theirs) = drawn(400), drawn(400)
        correct = rng.random(400) < 0.5
        facts = {"names": ["z_score", "best_minus_mean"], "queries": asked, "groups": groups}
        confidence = Confidence.fit(similarity, correct, **facts)
        told = confidence.check(new, queries=queries, groups=theirs)
        alone = Confidence.fit(similarity, correct, **{**facts, "groups": None})
        refused += [not told.holds, not alone.check(new, queries=queries).holds]
    assert refused[0] <= 8  # of 60 at 5 %: more has a chance of 0.004
    assert refused[1] >= 15


def test_few_queries_are_not_vouched_for(draw, fitted):
    verdict = fitted.check(draw(seed=1, count=19).similarity)
    assert verdict.state == "too few queries"
    assert not verdict.holds


def test_the_identity_is_that_of_the_vectors(draw):
    gallery = draw(seed=0).gallery
    assert GalleryIdentity.of(gallery) == GalleryIdentity.of(gallery.astype(np.float32))
    fewer = GalleryMoments.of(gallery[1:])
    with pytest.raises(ValueError, match="`moments` must be of the 400 vectors"):
        GalleryIdentity.of(gallery, fewer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 0.0}, "`level` must be a number between 0 and 1"),
        ({"queries": np.zeros((600, 3))}, r"must be \(600, 16\)"),
        ({"queries": np.zeros((5, 16))}, r"must be \(600, 16\)"),
    ],
)
def test_bad_queries_are_refused(draw, fitted, change, message):
    with pytest.raises(ValueError, match=message):
        fitted.check(draw(seed=1).similarity, **change)
