"""What mistyped words may have meant."""

import csv
import time
from pathlib import Path

import pytest

import studies
from halo_search.confidence.spelling import LONGEST, MOST_CANDIDATES, Spelling, spelling_of

TYPOS = Path(studies.__file__).parent / "data/typos.csv"
COUNTS = {"dog": 900, "dig": 6, "cat": 700, "girl": 300, "grill": 20, "sunglasses": 50, "rare": 2}
COUNTS |= {"player": 400, "platter": 14, "frisbe": 5, "frisbee": 300}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("dgo with a ball", ["dog with a ball"]),  # an exchange of two letters is one edit
        ("Dgo", ["dog"]),
        ("gril with sunglases", ["girl with sunglasses", "grill with sunglasses"]),
        ("dog", ["dog"]),
        ("rrae", ["rrae"]),  # of a rare word nobody thinks
        ("dogz", ["dog"]),  # two edits away is "dig": not beside a common word
        ("qwxz brrrp", ["qwxz brrrp"]),
        ("cot", ["cot"]),  # nor "cat": of three letters none is another
        ("dg", ["dg"]),  # of two letters every edit is a word
        ("plattr", ["platter"]),
    ],
)
def test_a_mistyped_word_is_one_of_captions(typed, meant):
    assert list(Spelling(COUNTS).meant(typed)) == meant


def test_a_known_word_is_no_typo():
    assert Spelling(COUNTS).meant("dgo", lambda word: word == "dgo") == {"dgo": 0.0}


def test_a_word_that_captions_hold_is_a_typo_of_one_edit_at_most():
    """`is_known` calls neither a word: the model spells both of pieces."""
    spelling = Spelling(COUNTS)
    assert list(spelling.meant("platter", lambda word: False)) == ["platter"]  # two edits: "player"
    assert list(spelling.meant("frisbe", lambda word: False)) == ["frisbee"]  # captions' own slip


def test_a_reader_of_words_alone_corrects_to_its_own():
    spelling = spelling_of(frozenset({"crown", "bird"}))
    assert list(spelling.meant("crwon of a brid")) == ["crown of a bird"]


def test_most_typos_are_among_the_candidates():
    spelling = spelling_of(None)
    with TYPOS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [row["meant"] in spelling.meant(row["typed"]) for row in rows]
    assert len(rows) == 40
    assert sum(found) >= 36


@pytest.mark.parametrize("text", ["x" * 8000, "語" * 8000, "xqzv " * 100, "a" * LONGEST])
def test_no_question_takes_long(text):
    spelling = spelling_of(None)
    start = time.process_time()
    assert len(spelling.meant(text)) <= MOST_CANDIDATES
    assert time.process_time() - start < 0.05
