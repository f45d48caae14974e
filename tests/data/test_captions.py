import keras
import numpy as np
import pytest
import tensorflow as tf

from halo_search.errors import InputError
from zoo.data import Augmentation, captions
from zoo.images.seeding import step_seed

TEXTS = ["A red bird.", "a RED-winged bird, small", "the bird's beak", "red"]


def test_ids_start_with_padding_and_unknown_and_follow_frequency():
    tokenizer = captions.word_tokenizer(TEXTS, max_words=4)
    assert [str(w) for w in tokenizer.get_vocabulary()] == (
        ["", "[UNK]", "red", "a", "bird", "beak", "birds", "small", "the", "winged"]
    )
    ids = tokenizer(["red Bird!", "dodo", "", "a red, red bird and more words"])
    assert ids.dtype == "int32"
    np.testing.assert_array_equal(ids, [[2, 4, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [3, 2, 2, 4]])


def test_vocabulary_is_limited_by_count_and_size():
    assert captions.word_tokenizer(TEXTS, min_count=2).vocabulary_size() == 5
    with pytest.raises(ValueError, match="must have words that occur at least 9 times"):
        captions.word_tokenizer(TEXTS, min_count=9)


@pytest.mark.parametrize("text", ["Été ROUGE", "鳥 の 絵"])
def test_other_alphabets_are_kept_and_lowered(text):
    tokenizer = captions.word_tokenizer([text])
    assert [str(w) for w in tokenizer.get_vocabulary()[2:]] == sorted(text.lower().split())


def test_the_vocabulary_is_saved_with_the_model(tmp_path):
    tokenizer = captions.word_tokenizer(TEXTS, max_words=5)
    inputs = keras.Input((), dtype="string")
    model = keras.Model(inputs, keras.layers.Embedding(20, 3)(tokenizer(inputs)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    strings = tf.constant(["the red bird", "a dodo"])
    np.testing.assert_array_equal(loaded(strings), model(strings))
    again = captions.WordTokenizer.from_config(tokenizer.get_config())
    np.testing.assert_array_equal(again(strings), tokenizer(strings))


def test_glove_fills_the_rows_of_known_words(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("bird 1.0 2.0 3.0\nunused 9 9 9\nred -1 0.5 1e-1\nnew york 4 5 6\n")
    tokenizer = captions.word_tokenizer(TEXTS)
    matrix, coverage = captions.read_glove(path, tokenizer)
    rows = {str(word): row for row, word in enumerate(tokenizer.get_vocabulary())}
    assert matrix.shape == (10, 3)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix[rows["bird"]], [1, 2, 3])
    np.testing.assert_allclose(matrix[rows["red"]], [-1, 0.5, 0.1])
    assert not matrix[0].any()
    assert matrix[rows["beak"]].any()
    assert coverage == 2 / 8
    np.testing.assert_array_equal(matrix, captions.read_glove(path, tokenizer)[0])


def test_missing_words_are_drawn_like_those_that_were_found(tmp_path):
    values = np.random.default_rng(0).normal(5.0, 0.1, 900)
    (tmp_path / "glove.txt").write_text(f"bird {' '.join(map(str, values))}\n")
    tokenizer = captions.word_tokenizer(TEXTS)
    matrix, _ = captions.read_glove(tmp_path / "glove.txt", tokenizer)
    missing = matrix[list(tokenizer.get_vocabulary()).index("beak")]
    np.testing.assert_allclose([missing.mean(), missing.std()], [5.0, 0.1], atol=0.02)


def test_the_head_of_a_word2vec_file_is_passed_over(tmp_path):
    (tmp_path / "w2v.txt").write_text("2 2\nbird 1 2\nred 3 4\n")
    assert captions.read_glove(tmp_path / "w2v.txt", captions.word_tokenizer(TEXTS))[1] == 0.25


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bird 1 2 3\nred 1 2\n", ":2: expected a word and 3 numbers"),
        ("dodo 1 2 3\n", "none of the 8 words"),
    ],
)
def test_bad_vectors_are_refused_with_their_line(tmp_path, text, why):
    path = tmp_path / "glove.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        captions.read_glove(path, captions.word_tokenizer(TEXTS))
    assert str(caught.value).startswith(str(path))
    assert why in str(caught.value)


IDS = tf.constant(np.where(np.arange(12) < 9, np.arange(12) + 2, 0)[None].repeat(400, 0), tf.int32)


@pytest.mark.parametrize("mode", ["mask", "random", "delete"])
def test_words_are_dropped_at_the_rate_and_padding_never(mode):
    seed = step_seed(0, 7)
    dropped = captions.drop_words(IDS, 0.3, seed, mode, captions.WordIds(end=50)).numpy()
    assert dropped.shape == IDS.shape
    if mode == "delete":
        lost = 9 - (dropped != 0).sum(1)
        # What is left keeps its order and has no gaps.
        for row in dropped:
            words = row[row != 0]
            assert (row[: len(words)] != 0).all()
            assert (np.diff(words) > 0).all()
        share = lost.mean() / 9
    else:
        assert (dropped[:, 9:] == 0).all()
        changed = dropped[:, :9] != IDS.numpy()[:, :9]
        share = changed.mean()
        new = dropped[:, :9][changed]
        assert (new == 1).all() if mode == "mask" else (new >= 2).all() and new.max() < 50
    assert share == pytest.approx(0.3, abs=0.03)
    again = captions.drop_words(IDS, 0.3, seed, mode, captions.WordIds(end=50))
    np.testing.assert_array_equal(again, dropped)
    other = captions.drop_words(IDS, 0.3, step_seed(0, 8), mode, captions.WordIds(end=50))
    assert (other.numpy() != dropped).any()


def test_a_share_of_the_words_is_deleted_rounded_down():
    """PCME's released tokenize: int(0.1 L) of L words, whatever became unknown before."""
    special = captions.WordIds(special=(2,))  # as a start is
    for share, count in ((0.3, 2), (0.1, 0), (0.125, 1)):  # of the eight others
        left = captions.delete_words(IDS, share, step_seed(0, 7), special).numpy()
        assert ((left != 0).sum(1) == 9 - count).all()
        assert (left[:, 0] == 2).all()
        assert all((np.diff(row[row != 0]) > 0).all() for row in left)
    both = Augmentation(word_dropping=1.0, word_deleting=0.5).on_captions(IDS, step_seed(0, 7))
    np.testing.assert_array_equal(both, np.where(np.arange(12) < 5, 1, 0)[None].repeat(400, 0))
    at = [(captions.delete_words(IDS, 0.12, step_seed(0, 7)) != IDS).numpy().argmax(1)]
    assert (np.bincount(at[0], minlength=9)[:9] > 20).all(), "any word may go"


def test_a_caption_never_loses_all_its_words():
    dropped = captions.drop_words(IDS, 1.0, step_seed(0, 0), "delete").numpy()
    assert (dropped[:, 0] == 2).all()
    assert not dropped[:, 1:].any()
    empty = captions.drop_words(tf.zeros((3, 4), tf.int32), 1.0, step_seed(0, 0), "delete")
    assert not empty.numpy().any()
