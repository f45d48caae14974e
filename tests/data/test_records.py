import numpy as np
import pytest

from zoo.data.records import Problems, Records
from zoo.errors import InputError


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
