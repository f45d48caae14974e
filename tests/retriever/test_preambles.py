"""What is left of a question when a search box' words are taken off."""

import pytest

from halo_search.confidence.words import is_short, stem, stems
from halo_search.retriever.preambles import as_asked, asked_for


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("photos of dog", "dog"),
        ("show me photos with birds", "birds"),
        ("Pictures with a dog on the beach", "a dog on the beach"),
        ("do I have any pictures of snow?", "snow"),
        ("is there a cat in my photos?", "a cat"),
        ("which photos have a boat", "a boat"),
        ("I'm looking for a red car", "a red car"),
        ("where are the horses", "the horses"),
        ("dog photos", "dog"),
        ("my Dog", "Dog"),
    ],
)
def test_preambles_and_endings_are_taken_off(typed, asked):
    assert asked_for(typed) == asked


@pytest.mark.parametrize(
    "text",
    [
        "a black dog runs on the beach",
        "A man shows a picture of a dog",
        "a photographer with a camera",
        "A woman is giving me a look",
        "photos",
        "what is this",
        "  A dog, running\ton the BEACH... ",
        "dogs!",
        "?",
        "",
    ],
)
def test_a_question_without_them_stays_as_it_is(text):
    assert asked_for(text) == text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dogs boxes buses benches dishes glasses quizzes", "dog box bus bench dish glass quizz"),
        ("cities babies movies", "city baby movy"),
        ("men women children people feet leaves knives", "man woman child person foot leaf knife"),
        ("bus grass tennis gas is tie", "bus grass tennis gas is tie"),
        ("horses trees shoes houses waves", "horse tree shoe house wave"),
    ],
)
def test_stems_lose_the_plural(words, expected):
    assert [stem(word) for word in words.split()] == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two Dogs and a dog", ["two", "dog"]),
        ("the dog's bicycles", ["dog", "bicycle"]),
        ("of the", []),
        ("", []),
        ("a red-blue boat", ["red", "blue", "boat"]),
    ],
)
def test_stems_are_of_words_that_name_something(text, expected):
    assert stems(text) == expected


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("a dog", "dog"),
        ("photos of a dog", "dog"),
        ("a dog on a beach", "a dog on a beach"),
        ("", ""),
    ],
)
def test_a_single_word_is_asked_without_its_article(typed, asked):
    assert as_asked(typed) == asked
    assert as_asked(as_asked(typed)) == asked


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("dog", True),
        ("two men and a boat", True),
        ("two men and a red boat", False),
        ("a dog runs.", False),  # a sentence
        ("", False),
    ],
)
def test_few_words_that_are_no_sentence_are_short(text, short):
    assert is_short(text) == short
