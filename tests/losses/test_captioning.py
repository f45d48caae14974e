import random

import keras
import numpy as np
import pytest

from zoo import losses

RNG = np.random.default_rng(3)
REGIONS = RNG.normal(size=(3, 4, 5)).astype("float32")
IDS = np.array([[4, 2, 6, 0, 0], [3, 0, 0, 0, 0], [2, 5, 3, 4, 1], [6, 6, 0, 0, 0]], "int32")
OWNER = np.array([0, 1, 1, 2])
MATCHES = (np.arange(3)[:, None] == OWNER).astype("float32")


@pytest.fixture(scope="module")
def term():
    random.seed(0)
    return losses.Captioning(7, 5, word_dim=4, hidden_dim=6)


def value(term, regions=REGIONS, ids=IDS, matches=MATCHES):
    images = {"mean": regions[:, 0], "regions": regions}
    captions = {"mean": np.zeros((len(ids), 5), "float32")}
    return float(term(images, captions, ids=ids, matches=matches))


def test_a_decoder_that_knows_nothing_pays_log_vocabulary_a_word_and_for_the_end(term):
    weights = term.predict.get_weights()
    term.predict.set_weights([np.zeros_like(weight) for weight in weights])
    # 3, 1 and 2 words and an end each; five words fill the row, and there is no end.
    np.testing.assert_allclose(value(term), np.log(7) * (4 + 2 + 5 + 3) / 4, rtol=1e-5)
    term.predict.set_weights(weights)


def test_the_mean_over_captions_by_one_at_a_time(term):
    alone = [
        value(term, REGIONS[[image]], IDS[[caption]], np.ones((1, 1), "float32"))
        for caption, image in enumerate(OWNER)
    ]
    np.testing.assert_allclose(value(term), np.mean(alone), rtol=1e-5)


def test_by_the_chain_rule_of_the_words(term):
    """A caption cut short, as one that fills its row, costs what its words cost in the whole."""
    one = np.ones((1, 1), "float32")
    costs = [value(term, REGIONS[:1], IDS[2:3, :length], one) for length in range(1, 6)]
    assert (np.diff([0, *costs]) > 0).all()
    other = IDS[2:3].copy()
    other[0, 3:] = 6
    # What comes later changes nothing before it.
    np.testing.assert_allclose(value(term, REGIONS[:1], other[:, :3], one), costs[2], rtol=1e-6)
    logits = [np.asarray(term.next_words(REGIONS[:1], ids)) for ids in (IDS[2:3], other)]
    np.testing.assert_allclose(logits[0][:, :3], logits[1][:, :3], atol=1e-6)
    assert np.abs(logits[0] - logits[1]).max() > 1e-4


def test_captions_without_an_image_are_left_out(term):
    matches = MATCHES.copy()
    matches[:, 3] = 0
    expected = value(term, ids=IDS[:3], matches=MATCHES[:, :3])
    np.testing.assert_allclose(value(term, matches=matches), expected, rtol=1e-5)
    assert value(term, matches=np.zeros_like(MATCHES)) == 0


def test_padding_changes_nothing(term):
    padded = np.pad(REGIONS, ((0, 0), (0, 2), (0, 0)))
    np.testing.assert_allclose(value(term, padded), value(term), rtol=1e-5)
    ids = np.pad(IDS[[0, 1, 3]], ((0, 0), (0, 3)))
    matches = MATCHES[:, [0, 1, 3]]
    expected = value(term, ids=IDS[[0, 1, 3]], matches=matches)
    np.testing.assert_allclose(value(term, ids=ids, matches=matches), expected, rtol=1e-5)


def test_it_learns_and_is_restored(term):
    config = keras.saving.serialize_keras_object(term)
    again = keras.saving.deserialize_keras_object(config)
    again.set_weights(term.get_weights())
    assert value(again) == value(term)
    assert again.get_config() == term.get_config()
    assert len(term.trainable_weights) == 11
