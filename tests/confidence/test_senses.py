"""Words of one meaning."""

import numpy as np
import pytest

from halo_search.confidence.bank import Bank
from halo_search.confidence.senses import Lexicon, spelled
from halo_search.confidence.words import stem

WORDS = ["couch", "dog", "dogs", "sofa"]
VECTORS = np.array([[1.0, 0.3], [0.0, 1.0], [0.1, 1.0], [1.0, 0.2]])


@pytest.mark.parametrize(
    ("text", "senses"),
    [
        ("a sofa", [{"sofa", "couch"}]),
        ("dogs on the couch", [{"dog"}, {"couch", "sofa"}]),
        ("a dog and dogs", [{"dog"}]),  # one stem counts once
        ("settee", [{stem("settee"), "sofa", "couch"}]),  # by its own vector
        ("zyzzyva", [{"zyzzyva"}]),
        ("of the", []),
    ],
)
def test_a_word_stands_for_those_that_are_alike(text, senses):
    found = Lexicon(WORDS, VECTORS).senses(text, {"settee": np.array([2.0, 0.5])})
    assert found == [frozenset(sense) for sense in senses]


def test_words_without_a_vector_are_embedded_once():
    asked = []

    def encode(words):
        asked.append(words)
        return np.tile([0.0, 3.0], (len(words), 1))

    found = Lexicon(WORDS, VECTORS).senses_of(["a hound", "hounds on a sofa", "dog"], encode)
    assert asked == [["hound", "hounds"]]
    assert found[0] == [frozenset({"hound", "dog"})]
    assert found[2] == [frozenset({"dog"})]
    (sentence,) = Lexicon(WORDS, VECTORS).senses_of(["a dog sleeps beside an old sofa"], encode)
    assert frozenset({"sofa"}) in sentence  # as it is spelled
    assert spelled("The dog’s toys, a toy") == [frozenset({"dog"}), frozenset({"toy"})]
    assert Lexicon([], np.empty((0, 0))).senses_of(["a hound"], encode) == [[frozenset({"hound"})]]
    assert len(asked) == 1


def test_it_travels_in_a_bank():
    rng = np.random.default_rng(0)
    bank = Bank.of(rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), range(30), ["a dog"] * 30)
    assert bank.lexicon.words == []
    again = bank.with_lexicon(Lexicon(WORDS, VECTORS)).lexicon
    assert again.words == WORDS
    assert again.senses("sofa") == [frozenset({"sofa", "couch"})]
    assert bank.share(frozenset({"dog", "cat"})) == pytest.approx(30.25 / 30.5)
