from collections import Counter

import numpy as np
import pytest

from halo_search.cli import query
from halo_search.collection import captions
from halo_search.errors import InputError
from halo_search.files.text_files import read_lines
from halo_search.files.vector_files import read_column
from zoo.data import sources
from zoo.data.pipeline.augmentation import RandomCrop, Views
from zoo.data.records import Problems, Records
from zoo.data.records import sources as module
from zoo.data.records.records import with_shuffled_captions
from zoo.data.records.sources import Features


def _records(**changes):
    values = {
        "name": "birds",
        "image_paths": ["a.jpg", "b.jpg", "c.jpg"],
        "captions": ["one", "two", "three", "four"],
        "caption_image": [0, 0, 2, 1],
        "image_labels": [4, 5, 4],
        "image_ids": [10, 20, 30],
        "class_names": tuple("abcdef"),
    }
    return Records(**{**values, **changes})


def test_caption_labels_are_those_of_their_images():
    records = _records()
    np.testing.assert_array_equal(records.caption_labels, [4, 4, 4, 5])
    assert (records.num_images, records.num_captions, records.num_classes) == (3, 4, 2)
    assert records.summary() == "birds: 3 images, 4 captions, 2 classes"


def test_a_selection_keeps_captions_with_their_images():
    chosen = _records().select([2, 0])
    assert list(chosen.image_paths) == ["c.jpg", "a.jpg"]
    assert list(chosen.captions) == ["three", "one", "two"]
    np.testing.assert_array_equal(chosen.caption_image, [0, 1, 1])
    np.testing.assert_array_equal(chosen.image_ids, [30, 10])
    for bad in ([0, 0], [3], [-1]):
        with pytest.raises(ValueError, match="`images` must be"):
            _records().select(bad)


def test_problems_are_raised_or_counted():
    with pytest.raises(InputError, match=r"^a.txt:3: too long$"):
        Problems().bad("long lines", "a.txt:3", "too long")
    problems = Problems(skip_bad=True)
    problems.bad("long lines", "a.txt:3", "too long")
    problems.missing("missing photos", "b.jpg")
    records = _records(skipped=tuple(problems.skipped))
    assert records.summary().endswith("left out: 1 long lines, 1 missing photos")


def records(count=200, captions_each=1):
    return Records(
        name="test",
        image_paths=[f"{i}.jpg" for i in range(count)],
        captions=[f"caption {i}" for i in range(count * captions_each)],
        caption_image=np.repeat(np.arange(count), captions_each),
        image_labels=np.arange(count),
        image_ids=np.arange(count),
    )


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_so_many_captions_go_to_other_images_and_none_is_lost(share):
    clean = records()
    noisy = with_shuffled_captions(clean, share, seed=3)
    assert (noisy.captions != clean.captions).sum() == round(share * 200)
    assert Counter(noisy.captions) == Counter(clean.captions)
    np.testing.assert_array_equal(noisy.caption_image, clean.caption_image)


def test_the_noise_is_that_of_its_seed():
    first, again, other = (with_shuffled_captions(records(), 0.5, seed) for seed in (0, 0, 1))
    assert (first.captions == again.captions).all()
    assert (first.captions != other.captions).any()


def test_captions_are_shuffled_not_images():
    clean = records(captions_each=5)
    noisy = with_shuffled_captions(clean, 0.3, seed=1)
    changed = noisy.captions != clean.captions
    assert changed.sum() == round(0.3 * 1000)
    np.testing.assert_array_equal(noisy.caption_image, clean.caption_image)
    of_image = changed.reshape(200, 5).sum(axis=1)
    assert set(of_image) > {0, 1, 2, 3}, "single captions of an image, not all five"
    place = {text: row for row, text in enumerate(clean.captions)}
    sources = np.array([place[text] // 5 for text in noisy.captions[changed]])
    assert (sources != np.flatnonzero(changed) // 5).mean() > 0.95


def test_a_large_file_is_read_by_rows_and_the_last_batch_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 0)
    array = np.random.default_rng(0).normal(size=(20, 3, 4)).astype("float32")
    np.save(tmp_path / "a.npy", array)
    source = Features(np.load(tmp_path / "a.npy", mmap_mode="r"), rows=[4, 2, 2, 0, 19])
    batches = list(source.in_order(2).as_numpy_iterator())
    assert [len(batch) for batch in batches] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(batches), array[[4, 2, 2, 0, 19]])


ODD = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e"  # `str.splitlines` ends lines at each
TEXTS = [*(f"a{one}b" for one in ODD), "a cat"]
ENDS = ["\n", "\r\n", "\r"]


READERS = {
    "lines": read_lines,
    "captions": lambda path: captions(path).values,
    "column": read_column,
    "--queries FILE": lambda path: list(query._lines(str(path))),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("reader", READERS)
def test_text_files(reader, end, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(("\ufeff" + end.join(TEXTS) + end).encode())
    assert list(READERS[reader](path)) == TEXTS


@pytest.fixture(scope="module")
def pictures(toy_records):
    return sources.Pictures(toy_records, 32, cache=False)


def rows(views, batch_size=50):
    return np.concatenate(list(views.in_order(batch_size).as_numpy_iterator()))


def test_the_first_view_is_the_picture_and_the_second_its_mirror_image(toy_records, pictures):
    views, number = Views(pictures, toy_records, 2), toy_records.num_images
    found = rows(views)
    assert views.count == len(found) == 2 * number
    np.testing.assert_array_equal(found[:number], rows(pictures))
    np.testing.assert_array_equal(found[number:], rows(pictures)[:, :, ::-1])


def test_parts_are_of_their_own_picture_and_follow_from_the_seed(toy_records, pictures):
    number, crop = toy_records.num_images, RandomCrop(area=(0.95, 1.0))
    found = rows(Views(pictures, toy_records, 4, crop))
    np.testing.assert_array_equal(found, rows(Views(pictures, toy_records, 4, crop), 7))
    other = rows(Views(pictures, toy_records, 4, crop, seed=1))
    assert (other[2 * number :] != found[2 * number :]).any()
    whole, parts = found[:number].astype(float), found[2 * number : 3 * number].astype(float)
    mirrored = found[3 * number :, :, ::-1].astype(float)
    for part in (parts, mirrored):
        own = np.abs(part - whole).mean(axis=(1, 2, 3))
        others = np.abs(part - np.roll(whole, 1, axis=0)).mean(axis=(1, 2, 3))
        assert (own < others).mean() > 0.9
    assert (parts != found[:number]).any()
    assert (parts != mirrored).any()
