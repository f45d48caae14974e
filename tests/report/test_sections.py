"""Numbers of the sections, recomputed by hand from the run they are of."""

import keras
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import spearmanr

from synthetic_run import records, run
from zoo import losses, models, similarities
from zoo.metrics import normalised_aurc
from zoo.report import calibration, gaussian_shape, inputs, markup, retrieval
from zoo.report.page import sections_of, write_report
from zoo.report.uncertainty_quality import (
    ambiguity_section,
    extremes,
    extremes_section,
    recall_gap,
    recall_section,
    rho_of_bins,
    risk_section,
    tenths,
)
from zoo.similarities import (
    ClosedFormSampledDistance,
    Cosine,
    KLDivergence,
    SetMatchProbability,
    SmoothChamfer,
    Wasserstein2,
)


@pytest.fixture(scope="module")
def reported():
    return run(true_matches=np.random.default_rng(1).integers(1, 30, 120))


def numbers_of(section):
    return {number.label: number.estimate for number in section.numbers}


def hits(reported, direction):
    """Whether each query's best answer is right, by sorting the whole matrix."""
    logits = np.asarray(reported.similarity(reported.split.images, reported.split.captions))
    matches = reported.records.image_labels[:, None] == reported.records.caption_labels[None]
    if direction == "t2i":
        logits, matches = logits.T, matches.T
    return matches[np.arange(len(logits)), logits.argmax(axis=1)]


def test_recall_by_hand_with_its_interval(reported):
    found = numbers_of(retrieval.section(reported))["image → text: Recall@1"]
    right = hits(reported, "i2t")
    assert found.value == pytest.approx(100 * right.mean())
    assert found.n == 40
    (number,) = (n for n in retrieval.section(reported).numbers if n.label.endswith("t: Recall@1"))
    assert number.chance == pytest.approx(100 * 15 / 120)  # 15 of 120 captions have its label
    rng = np.random.default_rng(0)
    drawn = [100 * right[rng.integers(0, 40, 40)].mean() for _ in range(40)]
    np.testing.assert_allclose([found.low, found.high], np.quantile(drawn, [0.025, 0.975]))


def test_risk_and_coverage_by_hand(reported):
    found = numbers_of(risk_section(reported))
    wrong = ~hits(reported, "t2i")[np.argsort(reported.split.caption_uncertainty)]
    left = np.arange(1, len(wrong) + 1)
    aurc = (np.cumsum(wrong) / left).mean()
    oracle = (np.cumsum(np.sort(wrong)) / left).mean()
    name = "text → image: "
    assert found[f"{name}area under risk–coverage (AURC)"].value == pytest.approx(100 * aurc)
    assert found[f"{name}AURC of the oracle"].value == pytest.approx(100 * oracle)
    assert found[f"{name}AURC of rejection at random"].value == pytest.approx(100 * wrong.mean())
    way = (wrong.mean() - aurc) / (wrong.mean() - oracle)
    assert found[f"{name}share of the way from random to oracle"].value == pytest.approx(100 * way)


def test_a_constant_uncertainty_is_called_not_informative(tmp_path, monkeypatch):
    monkeypatch.setattr(markup, "_png", lambda figure: b"")  # words are what is looked at
    shown = run(resamples=5)
    for side, count in (("image", 40), ("caption", 120)):
        object.__setattr__(shown.split, f"{side}_uncertainty", np.full(count, 0.05))
    verdicts = risk_section(shown).verdicts
    assert ["This uncertainty is not informative" in line for line in verdicts] == [True, True]
    path = write_report([shown], tmp_path)
    assert path.read_text().count("<strong>") == 4  # two are those on confidence


def test_bins_and_ambiguity_by_hand(reported):
    found = numbers_of(recall_section(reported))
    order = np.argsort(reported.split.caption_uncertainty)
    tenths = hits(reported, "t2i")[order].reshape(10, 12).mean(axis=1)
    rho = spearmanr(np.arange(10), tenths).statistic
    assert found["text → image: Spearman's ρ of bin and Recall@1"].value == pytest.approx(rho)
    label = "text → image: Recall@1, most certain tenth minus most uncertain tenth"
    assert found[label].value == pytest.approx(100 * (tenths[0] - tenths[-1]))
    (found,) = numbers_of(ambiguity_section(reported)).values()
    rho = spearmanr(reported.split.caption_uncertainty, reported.true_matches).statistic
    assert found.value == pytest.approx(rho)
    assert found.n == 120


def test_statistics_that_have_no_value_are_nan():
    assert np.isnan(rho_of_bins(np.ones(40), np.ones(40)))
    assert np.isnan(normalised_aurc(np.arange(4.0), np.zeros(4, bool)))
    assert recall_gap(np.repeat([1, 9], 20), np.arange(40.0)) == 100.0


def test_calibration_by_hand(reported):
    found = numbers_of(calibration.section(reported))
    logits = np.asarray(reported.similarity(reported.split.images, reported.split.captions), float)
    probability = expit(logits)
    matches = reported.records.image_labels[:, None] == reported.records.caption_labels[None]
    error = 0.0
    for low in np.arange(10) / 10:
        inside = (probability >= low) & ((probability < low + 0.1) | (low > 0.85))
        if inside.any():
            gap = abs(probability[inside].mean() - matches[inside].mean())
            error += inside.mean() * gap
    assert found["ECE of the raw probability, all pairs"].value == pytest.approx(
        100 * error, abs=1e-6
    )
    best = probability.max(axis=0)
    cells = calibration.binned(best, hits(reported, "t2i"))
    expected = calibration.calibration_error(cells)
    label = "ECE of the raw probability, text → image, each query's best pair"
    assert found[label].value == pytest.approx(expected, abs=1e-6)
    assert cells.sum(axis=(0, 1))[0] == 120


def test_perfectly_calibrated_predictions_have_no_error():
    probability = np.repeat([0.05, 0.25, 0.95], 20)
    right = np.concatenate([np.arange(20) < round(20 * p) for p in (0.05, 0.25, 0.95)])
    assert calibration.calibration_error(calibration.binned(probability, right)) < 1e-9
    wrong = calibration.binned(probability, ~right)
    assert calibration.calibration_error(wrong) == pytest.approx(100 * (0.9 + 0.5 + 0.9) / 3)


def test_similarities_without_a_probability_get_a_sentence():
    sigmoid_already = run(kind="set", similarity=SetMatchProbability())
    assert "no log-odds" in calibration.section(sigmoid_already).text
    for similarity in (Wasserstein2(), KLDivergence()):
        section = calibration.section(run(similarity=similarity))
        assert not section.figures
        assert "no log-odds" in section.text


def test_untrained_scales_are_not_calibrated():
    tower = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    own = ClosedFormSampledDistance()
    model = models.DualEncoder(tower, tower, own, loss=losses.MatchingCrossentropy())
    assert calibration.section(run(similarity=own, model=model)).figures
    for name in ("euclidean", "match_probability"):
        other = run(similarity=similarities.get(name, model), model=model)
        assert "no log-odds" in calibration.section(other).text
    model.loss = losses.TripletRanking()
    assert "no log-odds" in calibration.section(run(similarity=own, model=model)).text


def test_effective_dimensions_of_spheres_and_needles():
    needle = np.array([[0.0, -80.0, -80.0, -80.0]])
    np.testing.assert_allclose(gaussian_shape.effective_dimensions(np.full((2, 4), -700.0)), 1.0)
    np.testing.assert_allclose(gaussian_shape.effective_dimensions(needle), 0.25)
    two = np.log([[1.0, 3.0]])
    np.testing.assert_allclose(gaussian_shape.effective_dimensions(two), 16 / (2 * 10))


def test_words_by_hand():
    lines = inputs.words_of(["A red bird.", "a bird", "a Bird's nest"])
    assert lines == [["a", "red", "bird"], ["a", "bird"], ["a", "birds", "nest"]]
    certain, uncertain = inputs.tf_idf(lines, [0, 1, 1])
    assert "a" not in certain  # it has a third of the words here, three eighths of all words
    assert certain["red"] == pytest.approx(np.log(3) / 3)
    assert uncertain["nest"] == pytest.approx(np.log(3) / 5)
    np.testing.assert_array_equal(inputs.quantile_bins(np.array([5.0, 1, 3, 3]), 2), [1, 0, 0, 1])


def test_extremes_are_the_ends_in_order():
    values = np.array([3.0, 9, 1, 7, 5, 2])
    np.testing.assert_array_equal(extremes(values, 2), [2, 5, 3, 1])
    np.testing.assert_array_equal(extremes(np.array([2.0, 1, 3]), 3), [1, 2])
    low, high = tenths(np.arange(30.0))
    assert low.tolist() == [0, 1, 2]
    assert high.tolist() == [27, 28, 29]


def test_without_pictures_captions_are_a_table():
    section = extremes_section(run(picture=None))
    (table,) = section.tables
    assert len(table.rows) == 6
    assert all(len(row) == len(table.header) for row in table.rows)


def test_a_few_classes_are_drawn_with_all_their_captions_ellipses(reported):
    shown = gaussian_shape.items_of(reported.split, np.arange(8), each=3)
    images, labels, captions, caption_labels, names = shown
    assert len(images["mean"]) == len(labels) == 24
    assert len(captions["mean"]) == len(caption_labels) == 24
    assert names[3] == "Class 3"


@pytest.mark.parametrize(
    ("kind", "similarity", "expected"),
    [
        ("gaussian", None, {"recall_by_uncertainty", "risk_coverage", "ellipses", "isotropy"}),
        ("set", SmoothChamfer(16.0), {"recall_by_uncertainty", "risk_coverage", "words"}),
        ("point", Cosine(), {"no_uncertainty"}),
    ],
)
def test_every_kind_of_embedding_has_its_sections(kind, similarity, expected):
    found = {s.name: s for s in sections_of(run(kind=kind, similarity=similarity, resamples=5))}
    assert expected <= set(found)
    assert {"retrieval", "calibration"} <= set(found)
    assert ("isotropy" in found) == (kind == "gaussian")
    if kind == "point":
        assert set(found) == {"opening", "retrieval", "confidence", "calibration", "no_uncertainty"}


def test_runs_are_compared_on_the_same_queries():
    first, other = run("one"), run("other", seed=1)
    points = run("points", kind="point", similarity=Cosine())
    section = retrieval.comparison_section([first, other, points])
    found = numbers_of(section)["other minus one, image → text: Recall@1"]
    right = [hits(one, "i2t").astype(float) for one in (first, other)]
    assert found.value == pytest.approx(100 * (right[1].mean() - right[0].mean()))
    rng = np.random.default_rng(0)
    gap = right[1] - right[0]
    drawn = [100 * gap[rng.integers(0, 40, 40)].mean() for _ in range(40)]
    np.testing.assert_allclose([found.low, found.high], np.quantile(drawn, [0.025, 0.975]))
    (table,) = section.tables
    assert [row[0] for row in table.rows] == ["one", "other", "points"]
    assert "–" in table.rows[2]
    assert "–" not in table.rows[0]


def test_other_queries_are_not_compared():
    assert retrieval.same_queries(run(), run(seed=1))
    shown = run()
    object.__setattr__(shown.split, "records", records(seed=5))
    assert not retrieval.same_queries(run(), shown)
    assert list(retrieval.compared(run(), shown)) == []
    assert "not all of these" in retrieval.comparison_section([run(), shown]).text.lower()
