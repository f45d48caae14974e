"""Questions as a model is asked them: of another language, or with a negation in them."""

import numpy as np
import pytest

import packaged
from halo_search.confidence.senses import NO_WORDS, Lexicon
from halo_search.retriever.negations import affirmed

WORDS = ["shirt", "shirts", "shirtless", "without", "leash"]
VECTORS = np.array([[1, 0, 0], [1, 0.1, 0], [0.6, 0.8, 0], [0, 1, 0], [0, 0, 1]], float)
LACKING = {"without shirt": [0.5, 0.9, 0], "shirt": [1, 0, 0]}
LACKING |= {"without leash": [0, 0.3, 0.9], "leash": [0, 0, 1]}


@pytest.fixture(scope="module")
def wording():
    return packaged.built()[0].calibration.wording


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("a man without a shirt", "a shirtless man"),
        ("Two men with no shirt on a beach", "Two shirtless men on a beach"),
        ("without a shirt", "shirtless"),
        ("dog without a leash", "dog without a leash"),  # no word says it
        ("a man without", "a man without"),
        ("a man in a shirt", "a man in a shirt"),
    ],
)
def test_a_negation_is_asked_by_the_word_that_says_it(typed, asked):
    def encode(texts):
        return np.array([LACKING[text.replace("shirts", "shirt")] for text in texts], float)

    lexicon = Lexicon(WORDS, VECTORS)
    assert affirmed(typed, lexicon, encode) == asked
    assert affirmed(typed, NO_WORDS, encode) == typed


def test_the_word_that_says_it_is_no_form_of_what_is_lacking():
    lexicon = Lexicon(["shirts", "shirtless"], np.array([[0.5, 0.9, 0], [0.6, 0.8, 0]]))
    asked = affirmed(
        "a man without shirts", lexicon, lambda _: np.array([[0.5, 0.9, 0], [1.0, 0, 0]])
    )
    assert asked == "a shirtless man"


@pytest.mark.parametrize(
    "text",
    [
        "een man met een hoed",
        "ein Hund",
        "un perro en la playa",
        "chien noir",
        "en man med en hatt",
        "zwei Kinder spielen im Wasser",
    ],
)
def test_a_text_of_another_language_is_not_corrected_and_not_understood(wording, text):
    assert wording.is_foreign(text)
    assert list(wording.meanings(text)) == [text]
    answer = packaged.built()[0].ask(text)
    assert answer.verdict == "not understood"
    assert answer.reason.startswith("I don't know the words")
    assert answer.asked is None


@pytest.mark.parametrize(
    "text",
    [
        "gril with sunglases",
        "chidlren in a fountian",
        "tenis plyer",
        "beech volleyball plyer",
        "dgo",
    ],
)
def test_typos_and_negations_are_english(wording, text):
    assert not wording.is_foreign(text)


def test_what_is_without_a_shirt_is_shirtless(wording):
    assert list(wording.meanings("a man without a shirt")) == ["a shirtless man"]
    assert list(wording.meanings("children with no shoes")) == ["barefoot children"]
    assert list(wording.meanings("dog without a leash")) == ["dog without a leash"]
