"""Sixty ordinary questions over the packaged photos, judged by hand before a model was trained."""

from pathlib import Path

import numpy as np
import pytest

import packaged
from zoo.data import packaged_photos, photo_credits

FILE = Path(__file__).parents[1] / "questions" / "packaged_photos.tsv"
ROWS = [line.split("\t") for line in FILE.read_text().splitlines() if not line.startswith("#")]
FITTING = {question: {int(number) for number in fitting.split()} for question, fitting in ROWS}


def test_every_photo_has_a_licence_that_lets_it_be_shown_and_changed():
    credits = photo_credits()
    assert {path.name for path in packaged_photos()} == set(credits)
    assert len(credits) == 170
    for credit in credits.values():
        assert credit.licence in ("CC BY 2.0", "CC BY-SA 2.0", "No known copyright restrictions")
        assert credit.page.endswith(credit.flickr_id)


@pytest.fixture(scope="module")
def retriever():
    return packaged.built()[0]


@pytest.fixture(scope="module")
def answers(retriever):
    return dict(zip(FITTING, retriever.ask(list(FITTING)), strict=True))


def understood(retriever, questions):
    """The share of questions that are."""
    return np.mean([one.verdict != "not understood" for one in retriever.ask(questions, k=1)])


@pytest.mark.slow
def test_everyday_questions_are_understood_and_strange_ones_are_not(retriever):
    """Both lists were written before the preset was asked."""
    everyday, strange = (
        (FILE.parent / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        for name in ("ordinary_photos", "strange")
    )
    assert len(everyday) >= len(strange) >= 200
    assert understood(retriever, everyday) >= 0.9
    assert understood(retriever, strange) <= 0.05


@pytest.mark.slow
def test_what_is_said_is_true_of_all_sixty(answers):
    """How likely the first photo fits, beside whether it does by hand: all of the questions."""
    said = [answers[q].probability or 0.0 for q in FITTING]
    fits = [first(answers[q]) in fitting for q, fitting in FITTING.items()]
    # Sixty questions tell it to 0.12; it is 0.12 too low today.
    assert abs(np.mean(said) - np.mean(fits)) <= 0.16


def first(answer):
    """The number of the photo that comes first: ids are the rows of what was indexed."""
    return int(packaged_photos()[answer.ids[0]].stem)


@pytest.mark.slow
def test_the_first_picture_fits(answers):
    there = {question: fitting for question, fitting in FITTING.items() if fitting}
    right = [first(answers[q]) in fitting for q, fitting in there.items()]
    assert sum(right) >= 0.6 * len(there)


@pytest.mark.slow
def test_what_is_not_there_is_declined(answers):
    absent = [question for question, fitting in FITTING.items() if not fitting]
    declined = [answers[question].verdict != "likely" for question in absent]
    assert sum(declined) >= 0.8 * len(absent)


@pytest.mark.slow
def test_of_questions_with_an_answer_few_likely_ones_are_wrong(answers):
    """What is promised of likely answers is of questions that have an answer."""
    there = [question for question, fitting in FITTING.items() if fitting]
    right = np.array([first(answers[q]) in FITTING[q] for q in there])
    likely = np.array([answers[q].verdict == "likely" for q in there])
    assert likely.sum() >= 8
    assert 1 - right[likely].mean() <= 0.3  # the certified share of photos that do not fit


@pytest.mark.slow
def test_a_photo_that_fits_two_dogs_fits_a_dog_about_as_much(retriever):
    """By the shares of words near it: no rule says so."""
    longer = {
        "dog": ("two dogs", "dog on a couch", "white dog"),
        "train": ("train on the tracks", "old train"),
        "cat": ("black cat", "cat on a couch", "cat sleeping"),
        "pizza": ("pizza on a table", "slice of pizza"),
        "street": ("city street", "busy street at night"),
        "kitchen": ("white kitchen", "kitchen with a stove"),
        "man": ("man on a motorcycle", "man in a suit", "young man"),
        "water": ("boat in the water", "bird in the water"),
    }
    away = []
    for word, questions in longer.items():
        whole, *parts = (by_photo(retriever, text) for text in (word, *questions))
        away += [part[part >= 0.2] - whole[part >= 0.2] for part in parts]
    away = np.concatenate(away)
    assert len(away) > 50
    assert np.mean(away <= 0.1) >= 0.85
    assert np.maximum(away, 0).mean() <= 0.05


def by_photo(retriever, question):
    """What is said of each photo."""
    answer = retriever.ask(question, k=len(retriever))
    return answer.fits[np.argsort(answer.ids)]
