"""Do people agree: τ as CLIPScore computes it, first photos that fit, what knows how many fit."""

import csv

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from studies import oracle, people
from studies.judgments import FILE, Grades

HEAD = ("caption_of", "caption", "image", "yes", "no", "expert_1", "expert_2", "expert_3")
ROWS = [
    ("a.jpg", "A dog .", "a.jpg", 3, 0, 4, 4, 3),
    ("a.jpg", "A dog .", "b.jpg", 1, 2, 1, 2, 1),
    ("a.jpg", "A dog .", "c.jpg", 2, 1, "", "", ""),
    ("b.jpg", "Two cats .", "a.jpg", 0, 3, 1, 1, 2),
    ("b.jpg", "Two cats .", "c.jpg", "", "", 3, 4, 4),
]


@pytest.fixture
def folder(tmp_path):
    with open(tmp_path / FILE, "w", newline="") as file:
        csv.writer(file).writerows([HEAD, *ROWS])
    return tmp_path


@pytest.fixture
def questions():
    fits = np.array([[1.0, 0.0, 1.0, np.nan], [0.0, 1.0, 1.0, np.nan]])
    images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    return people.Questions(["a.jpg", "b.jpg"], np.array([0, 3]), images, fits)


SCORES = np.array([[0.9, 0.1, 0.3, 0.2], [0.2, 0.5, 0.4, 0.8]])


def test_each_expert_is_a_row_and_the_crowd_a_share(folder):
    experts, crowd = Grades.read(folder)
    assert experts.values.tolist() == [4, 4, 3, 1, 2, 1, 1, 1, 2, 3, 4, 4]
    np.testing.assert_allclose(crowd.values, [1, 1 / 3, 2 / 3, 0])


@pytest.mark.parametrize("with_own", [False, True])
def test_kendall_is_that_of_the_pairs_that_are_left(folder, questions, with_own):
    experts, _ = Grades.read(folder)
    found = people.kendall(SCORES, questions, experts, "c", with_own)
    scores = [0.9] * 3 * with_own + [0.1] * 3 + [0.2] * 3 + [0.4] * 3
    values = experts.values[0 if with_own else 3 :]
    expected = 100 * kendalltau(scores, values, variant="c").statistic
    assert found(np.ones(2, int)) == pytest.approx(expected)
    second = 100 * kendalltau(scores[-6:], values[-6:], variant="c").statistic
    assert found(np.array([0, 2])) == pytest.approx(
        100 * kendalltau(scores[-6:] * 2, np.tile(values[-6:], 2), variant="c").statistic
    )
    assert second != pytest.approx(expected)


def test_what_knows_how_many_photos_fit():
    rng = np.random.default_rng(0)
    fits = (rng.uniform(size=(30, 9)) < rng.uniform(size=(30, 1))).astype(float)
    questions = people.Questions(list(range(30)), np.arange(30), list(range(9)), fits)
    scores, sigma = rng.normal(size=(30, 9)), rng.normal(size=30)
    found = people.of_counts(people.Answers(scores, sigma, 1.0), questions)
    once = np.ones(30, int)
    counts = fits.sum(axis=1)
    assert found["σ"](once) == pytest.approx(spearmanr(sigma, counts).statistic)
    assert found["best score"](once) == pytest.approx(spearmanr(scores.max(1), counts).statistic)
    assert people.of_counts(people.Answers(scores, None, 1.0), questions)["σ"] is None


def test_an_oracle_of_half_of_the_photos_reads_no_judgment_of_the_others():
    rng, part = np.random.default_rng(0), np.arange(40) < 20
    table = rng.normal(size=(40, 40, 4))
    truth = np.where(rng.random((40, 40)) < 0.3, np.nan, table[..., 0] > 0)
    expected = oracle.weights_within(table, truth, part)
    truth[20:], truth[:, 20:] = 1.0, 0.0
    assert oracle.weights_within(table, truth, part) == expected
    assert set(expected["captions and score"]) == {"greatest", "second", "mean", "score", "bias"}
