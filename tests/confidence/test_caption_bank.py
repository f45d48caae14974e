"""How many photos of a bank hold the words of a question."""

import numpy as np
import pytest

from zoo.confidence.words import CaptionBank, packaged_bank, stems

CAPTIONS = (
    ("A dog runs on the beach", 0),
    ("Two dogs play", 0),
    ("A black cat", 1),
    ("a Cat and a dog!", 2),
    ("Men on bicycles", 3),
    ("a man rides a bicycle", 4),
    ("zyzzyva", 4),
    ("children", 5),
)


@pytest.fixture
def bank():
    return CaptionBank.of([text for text, _ in CAPTIONS], [photo for _, photo in CAPTIONS])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("dog", 2),  # a photo with two captions about it counts once
        ("a dog and a cat", 1),
        ("cat", 2),
        ("a man on a bicycle", 2),  # men are man
        ("zyzzyva", 0),  # of one photo, as misspelt words are
        ("quux dog", 0),
        ("", 0),
    ],
)
def test_it_counts_photos_that_hold_all_stems(bank, text, count):
    assert bank.count(text) == count
    assert bank.size == 6


def test_counts_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    words = [f"thing{letter}" for letter in "abcdefgh"]
    captions = [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(300)]
    photos = np.arange(300) // 5
    held = [
        {stem for text in captions[5 * photo : 5 * photo + 5] for stem in stems(text)}
        for photo in range(60)
    ]
    bank = CaptionBank.of(captions, photos, least=1)
    for _ in range(60):
        asked = list(rng.choice(words, rng.integers(1, 4)))
        assert bank.count(" ".join(asked)) == sum(set(asked) <= one for one in held)


def test_it_is_the_same_from_its_file(bank, tmp_path):
    bank.save(tmp_path / "bank.npz")
    again = CaptionBank.load(tmp_path / "bank.npz")
    assert again.stems == bank.stems
    assert again.size == bank.size
    for text, _ in CAPTIONS:
        assert again.count(text) == bank.count(text)
        for stem in stems(text):
            np.testing.assert_array_equal(again.photos_with(stem), bank.photos_with(stem))


def test_the_packaged_bank_knows_common_things_and_no_captions():
    bank = packaged_bank()
    assert 4000 <= bank.size <= 5000
    counts = [bank.count(word) for word in ("man", "dog", "giraffe", "passport", "quuxify")]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 500
    assert counts[-1] == 0
    assert bank.count("a dog on a beach") < bank.count("dog")
    assert bank.stems == sorted(bank.stems)
    assert all(" " not in stem for stem in bank.stems)
    assert all((np.diff(bank.photos_with(stem)) > 0).all() for stem in ("man", "dog", "beach"))
    assert packaged_bank() is bank
