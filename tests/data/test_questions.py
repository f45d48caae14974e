"""What is left of a question when a search box' words are taken off."""

import pytest

from zoo.data.text.questions import asked_for


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("photos of dog", "dog"),
        ("show me photos with birds", "birds"),
        ("Show me photos of my dog, please", "dog"),
        ("Pictures with a dog on the beach", "a dog on the beach"),
        ("do I have any pictures of snow?", "snow"),
        ("is there a cat in my photos?", "a cat"),
        ("can you find me a picture of two men talking", "two men talking"),
        ("which photos have a boat", "a boat"),
        ("I'm looking for a red car", "a red car"),
        ("where are the horses", "the horses"),
        ("search for sunsets", "sunsets"),
        ("dog photos", "dog"),
        ("my Dog", "Dog"),
        ("images containing  a   bus", "a bus"),
    ],
)
def test_preambles_and_endings_are_taken_off(typed, asked):
    assert asked_for(typed) == asked


@pytest.mark.parametrize(
    "text",
    [
        "a black dog runs on the beach",
        "A man shows a picture of a dog",
        "people looking at photos of a wedding",
        "a photographer with a camera",
        "A woman is giving me a look",
        "some children are playing",
        "photos",
        "what is this",
        "  A dog, running\ton the BEACH... ",
        "dogs!",
        "show me",
        "?",
        "",
    ],
)
def test_a_question_without_them_stays_as_it_is(text):
    assert asked_for(text) == text


def test_nothing_is_taken_off_twice():
    for text in ("photos of photos of a dog", "please please show me pictures of pictures of cats"):
        assert asked_for(asked_for(text)) == asked_for(text)
