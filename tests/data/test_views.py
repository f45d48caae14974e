import numpy as np
import pytest

from zoo.data import sources
from zoo.data.pipeline.augmentation import RandomCrop, Views


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
