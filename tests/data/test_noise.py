from collections import Counter

import numpy as np
import pytest

from zoo.data.records import Records
from zoo.data.records.records import with_shuffled_captions


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
