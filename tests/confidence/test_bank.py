"""Captioned photos as a second opinion, and how many of them hold a question's words."""

import dataclasses

import numpy as np
import pytest

from halo_search.confidence import Probes
from halo_search.confidence.bank import COLUMNS, LIKE, NEAREST, SHRINK, WIDTH, Bank, Near
from halo_search.confidence.senses import spelled
from halo_search.confidence.words import CaptionBank, packaged_bank, stems
from halo_search.embeddings.arrays import unit
from halo_search.errors import InputError

PHOTOS, DIM = 60, 8


@pytest.fixture(scope="module")
def bank():
    rng = np.random.default_rng(0)
    images, captions = rng.normal(size=(PHOTOS, DIM)), rng.normal(size=(2 * PHOTOS, DIM))
    texts = [f"a dog beside {'water' if n % 3 else 'two cats'}" for n in range(2 * PHOTOS)]
    return Bank.of(images, captions, np.arange(2 * PHOTOS) // 2, texts), images, captions


def test_what_is_near_says_what_a_photo_shows(bank):
    bank, images, captions = bank
    rng = np.random.default_rng(1)
    items = np.concatenate([rng.normal(size=(30, DIM)), images[:1]])  # the last is in the bank
    near = bank.near(items)
    cosines = unit(items) @ unit(bank.images.astype(float)).T
    cosines[-1, 0] = -1  # a photo tells nothing of itself
    order = np.argsort(-cosines, axis=1)[:, :NEAREST]
    assert all(set(row) == set(own) for row, own in zip(near.rows, order, strict=True))
    weights = np.exp(np.take_along_axis(cosines, order, axis=1) / WIDTH)
    weights /= weights.sum(axis=1, keepdims=True)
    means = unit(captions).reshape(PHOTOS, 2, DIM).mean(axis=1)
    told = np.einsum("nk,nkd->nd", weights, unit(means)[order])
    assert (np.sum(unit(told) * unit(near.told.astype(float)), axis=1) > 0.99).all()

    query = rng.normal(size=(2, DIM))
    places = np.array([[3, 30], [0, 7]])
    found = near.of(bank, query, [spelled("a cat"), spelled("dogs in the water")], places)
    assert found.shape == (2, 2, len(COLUMNS))
    has_cat = np.zeros(PHOTOS)
    has_cat[bank.holding("cat")] = 1
    assert has_cat.sum() == len({n // 2 for n in range(0, 2 * PHOTOS, 3)})
    share = (weights * has_cat[order]).sum(axis=1)
    columns = dict(zip(COLUMNS, found[0].T, strict=True))
    np.testing.assert_allclose(columns["share"], np.log(share[places[0]] + 0.01), atol=0.1)
    showing = near.showing(bank, ["a cat", "a cat and a zebra", ""])
    np.testing.assert_allclose(showing, [share.sum(), 0, 0], rtol=0.01)
    common = bank.share(frozenset(["cat"]))
    ratio = np.log((NEAREST * share + SHRINK * common) / ((NEAREST + SHRINK) * common))
    np.testing.assert_allclose(columns["words"], ratio[places[0]], atol=0.1)
    cosines = unit(query) @ unit(told).T
    np.testing.assert_allclose(columns["told"], cosines[0, places[0]], atol=0.05)
    for name, vectors in (("general", bank.images), ("captions", bank.captions)):
        like = np.sort(unit(query[:1]) @ unit(vectors.astype(float)).T)[0, -LIKE:].mean()
        np.testing.assert_allclose(columns[name], like, atol=1e-6)
    assert np.isfinite(near.of(bank, query, [[], spelled("zebra")], places)).all()


def test_it_is_small_has_no_words_and_travels(bank, tmp_path):
    bank = bank[0]
    near = bank.near(np.random.default_rng(2).normal(size=(50, 320))[:, :DIM])
    assert sum(x.nbytes for x in near.arrays().values()) / 50 - DIM + 320 <= 1000
    labels = np.arange(PHOTOS)
    side = {"mean": np.random.default_rng(3).normal(size=(PHOTOS, DIM))}
    Probes.of(side, side, labels, labels, bank=bank).save(tmp_path / "probes.npz")
    assert b"water" not in (tmp_path / "probes.npz").read_bytes()
    again = Probes.load(tmp_path / "probes.npz").bank
    for name in (field.name for field in dataclasses.fields(bank)):
        np.testing.assert_array_equal(getattr(again, name), getattr(bank, name))
    np.savez(tmp_path / "near.npz", **near.arrays())
    np.testing.assert_array_equal(Near.load(tmp_path / "near.npz").told, near.told)
    np.savez(tmp_path / "near.npz", other=near.told)
    with pytest.raises(InputError, match="build the index again"):
        Near.load(tmp_path / "near.npz")


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
def caption_bank():
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
def test_it_counts_photos_that_hold_all_stems(caption_bank, text, count):
    assert caption_bank.count(spelled(text)) == count
    assert caption_bank.size == 6


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
        assert bank.count(spelled(" ".join(asked))) == sum(set(asked) <= one for one in held)


def test_it_is_the_same_from_its_file(caption_bank, tmp_path):
    bank = caption_bank
    bank.save(tmp_path / "bank.npz")
    again = CaptionBank.load(tmp_path / "bank.npz")
    assert (again.stems, again.words) == (bank.stems, bank.words)
    assert again.size == bank.size
    for text, _ in CAPTIONS:
        assert again.count(spelled(text)) == bank.count(spelled(text))
        for one in stems(text):
            np.testing.assert_array_equal(again.photos_with(one), bank.photos_with(one))


def test_the_packaged_bank_knows_common_things_and_no_captions():
    bank = packaged_bank()
    assert 4000 <= bank.size <= 5000
    words = ("man", "dog", "giraffe", "passport", "quuxify")
    counts = [bank.count(spelled(word)) for word in words]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 500
    assert counts[-1] == 0
    assert bank.count(spelled("a dog on a beach")) < bank.count(spelled("dog"))
    assert bank.stems == sorted(bank.stems)
    assert all(" " not in stem for stem in bank.stems)
    assert all((np.diff(bank.photos_with(stem)) > 0).all() for stem in ("man", "dog", "beach"))
    assert packaged_bank() is bank
