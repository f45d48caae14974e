from collections import Counter

import numpy as np
import pytest

from zoo.data.records import Records
from zoo.data.records.noise import with_shuffled_captions


def records(count=200):
    return Records(
        name="test",
        image_paths=[f"{i}.jpg" for i in range(count)],
        captions=[f"caption {i}" for i in range(count)],
        caption_image=np.arange(count),
        image_labels=np.arange(count),
        image_ids=np.arange(count),
    )


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
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


def test_a_share_is_between_0_and_1():
    with pytest.raises(ValueError, match="`share`"):
        with_shuffled_captions(records(), 1.2)
