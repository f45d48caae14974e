import numpy as np
import pytest

from layer_checks import check_layer
from zoo.layers import SentenceGRU

RNG = np.random.default_rng(0)
WORDS = RNG.normal(size=(4, 6, 5)).astype("float32")
LENGTHS = np.array([6, 3, 1, 4])
MASK = np.arange(6) < LENGTHS[:, None]


@pytest.mark.parametrize("config", [{"merge": "ave"}, {"bidirectional": False}])
def test_sentence_gru_is_a_layer(config):
    inputs = {"words": WORDS, "mask": MASK}
    check_layer(SentenceGRU, {"dim": 8, **config}, inputs, ((4, 6, 8), (4, 8)))


@pytest.mark.parametrize("merge", ["concat", "ave"])
def test_padding_changes_nothing(merge):
    layer = SentenceGRU(8, merge=merge)
    states, sentence = layer(WORDS, mask=MASK)
    assert (np.asarray(states)[~MASK] == 0).all()
    garbage = np.where(MASK[..., None], WORDS, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, mask=MASK)[1], sentence, atol=1e-6)
    for i, length in enumerate(LENGTHS):
        alone_states, alone = layer(WORDS[i : i + 1, :length])
        np.testing.assert_allclose(alone[0], sentence[i], atol=1e-6)
        np.testing.assert_allclose(alone_states[0], states[i, :length], atol=1e-6)


def test_both_halves_have_read_the_whole_sentence():
    layer = SentenceGRU(8)
    _, sentence = layer(WORDS, mask=MASK)
    changed = WORDS.copy()
    changed[0, 2] += 1
    difference = np.abs(layer(changed, mask=MASK)[1] - sentence)[0]
    assert (difference > 1e-5).all()


def test_a_sentence_without_words_is_one_word_of_padding():
    layer = SentenceGRU(8)
    states, sentence = layer(WORDS, mask=np.zeros_like(MASK))
    np.testing.assert_allclose(sentence, layer(WORDS[:, :1])[1], atol=1e-6)
    assert (np.asarray(states) == 0).all()


@pytest.mark.parametrize("merge", ["concat", "ave"])
def test_a_sentence_at_its_last_word_has_the_states_of_that_word(merge):
    layer = SentenceGRU(8, merge=merge, at_last_word=True)
    states, sentence = layer(WORDS, mask=MASK)
    rows = np.arange(len(LENGTHS))
    np.testing.assert_array_equal(sentence, np.asarray(states)[rows, LENGTHS - 1])
    np.testing.assert_array_equal(layer(WORDS)[1], np.asarray(layer(WORDS)[0])[:, -1])
