import numpy as np
import pytest
import tensorflow as tf

from zoo.data.pipeline.augmentation import SizeAugmentation
from zoo.data.text.captions import PADDING_ID, UNKNOWN_ID, WordIds
from zoo.files.seeding import step_seed

START, END = 2, 3
WORDS = WordIds(first=10, end=1000, special=(START, END))
ROWS, LENGTH = 2000, 25
RATE = 0.3


@pytest.fixture(scope="module")
def before():
    ids = np.full((ROWS, LENGTH), 9, "int32")  # not one of the random words
    ids[:, 0], ids[:, 21], ids[:, 22:] = START, END, PADDING_ID
    return ids


@pytest.fixture(scope="module")
def after(before):
    augmentation = SizeAugmentation(word_dropping=RATE)
    return augmentation.on_captions(tf.constant(before), step_seed(0, 3), WORDS).numpy()


def test_lost_words_are_half_masked_a_tenth_replaced_and_the_rest_deleted(after):
    words = 20 * ROWS
    masked, kept = (after == UNKNOWN_ID).sum() / words, (after == 9).sum() / words
    replaced = ((after >= WORDS.first) & (after < WORDS.end)).sum() / words
    deviation = 4 * np.sqrt(0.25 / words)
    assert masked == pytest.approx(0.5 * RATE, abs=deviation)
    assert replaced == pytest.approx(0.1 * RATE, abs=deviation)
    assert 1 - masked - kept - replaced == pytest.approx(0.4 * RATE, abs=deviation)


def test_start_and_end_stay_and_the_rest_moves_up(after):
    assert (after[:, 0] == START).all()
    assert ((after == END).sum(axis=1) == 1).all()
    place = (after == END).argmax(axis=1)
    assert all((row[end + 1 :] == PADDING_ID).all() for row, end in zip(after, place, strict=True))
    assert all((row[:end] != PADDING_ID).all() for row, end in zip(after, place, strict=True))


def test_nothing_is_lost_at_a_rate_of_nothing(before):
    kept = SizeAugmentation(word_dropping=0.0).on_captions(before, step_seed(0, 3), WORDS)
    np.testing.assert_array_equal(kept, before)
