"""The report's section on confidence: its numbers by hand, with a calibration and without."""

import dataclasses

import numpy as np
import pytest

from synthetic_run import encoded, picture, records
from zoo.confidence import QueryScores, abstention_auc, expected_calibration_error
from zoo.embeddings.spaces import SPACES
from zoo.evaluation import Answers, make_probes
from zoo.evaluation.calibration import calibrated, cross_fitted
from zoo.report import ReportedRun, confidence_section
from zoo.report.confidence_section import RUNS_OWN, SCORES, UNION
from zoo.similarities import ClosedFormSampledDistance, Cosine

SIMILARITY = ClosedFormSampledDistance()


def split(seed, images=120, kind="gaussian", labels=6):
    return encoded(records(images=images, labels=labels, seed=seed), kind=kind)


@pytest.fixture(scope="module")
def probes():
    return make_probes(None, split(1))


def reported(shown, similarity=SIMILARITY, **options):
    return ReportedRun("birds", shown, similarity, picture=picture, resamples=20, **options)


def values(section):
    return {number.label: number.estimate.value for number in section.numbers}


def test_numbers_by_hand_with_the_runs_own_probes(probes):
    shown = split(2)
    section = confidence_section.section(reported(shown, probes=probes))
    found = values(section)
    logits = np.asarray(SIMILARITY(shown.images, shown.captions), float)
    own = calibrated(probes, SIMILARITY, shown, "i2t")
    vectors = SPACES["csd"].gallery(shown.captions)
    scores = QueryScores.of_matrix(logits, vectors=vectors, copies=own.copies)
    labels, others = shown.records.image_labels, shown.records.caption_labels
    correct = others[logits.argmax(axis=1)] == labels
    by_hand = {
        "uncertainty": -shown.image_uncertainty,
        "best score": logits.max(axis=1),
        "best score − mean": logits.max(axis=1) - logits.mean(axis=1),
        RUNS_OWN: own.probability(scores),
    }
    for name, signal in by_hand.items():
        nauc = abstention_auc(signal, correct)
        assert found[f"image → text: nAUC of {name}"] == pytest.approx(nauc, abs=1e-6)
    error = 100 * expected_calibration_error(by_hand[RUNS_OWN], correct)
    label = f"image → text: calibration error of {RUNS_OWN}"
    assert found[label] == pytest.approx(error, abs=1e-4)
    (number,) = (one for one in section.numbers if one.label == label)
    assert number.estimate.low < number.estimate.value < number.estimate.high
    assert {f"text → image: nAUC of {name}" for name in (RUNS_OWN, UNION, SCORES)} <= set(found)
    assert f"({RUNS_OWN})" in section.verdicts[0]
    assert len(section.figures) == 2


def test_a_run_without_a_calibration_is_cross_fitted():
    shown = split(2)
    section = confidence_section.section(reported(shown))
    assert f"image → text: nAUC of {RUNS_OWN}" not in values(section)
    assert f"({UNION})" in section.verdicts[1]
    assert "validation" not in section.text
    answers = Answers.of(shown, SIMILARITY, "t2i")
    probability = cross_fitted(answers)
    assert expected_calibration_error(probability, answers.correct) < 0.12
    # The truth of a fifth is not in its own probabilities, but in those of the others.
    fifth = np.array_split(np.random.default_rng(0).permutation(len(answers)), 5)[0]
    ranks = answers.ranks.copy()
    ranks[fifth] = np.where(answers.correct[fifth], 2, 1)
    other = cross_fitted(dataclasses.replace(answers, ranks=ranks))
    same = other == probability
    assert same[fifth].all()
    assert not np.delete(same, fifth).any()


def test_points_have_scores_alone():
    section = confidence_section.section(reported(split(2, kind="point"), Cosine()))
    labels = set(values(section))
    assert f"image → text: nAUC of {SCORES}" in labels
    assert not any("uncertainty" in label for label in labels)


def test_too_few_queries_leave_what_needs_no_calibration():
    section = confidence_section.section(reported(split(2, images=12, labels=4)))
    labels = set(values(section))
    assert "image → text: nAUC of best score" in labels
    assert f"image → text: nAUC of {SCORES}" not in labels
    assert f"{SCORES}: a calibration needs at least 20 queries" in section.text
