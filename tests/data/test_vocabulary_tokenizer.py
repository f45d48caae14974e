"""NLTK's words and the ids of published vocabularies, without NLTK."""

import json
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.data import VocabularyTokenizer, read_vocabulary_tokenizer
from zoo.errors import InputError

# What NLTKWordTokenizer().tokenize(text.lower()) gives, sentence by sentence.
NLTK = {
    "A man riding a wave on top of a surfboard.": "a man riding a wave on top of a surfboard .",
    "Two dogs. They run!": "two dogs . they run !",
    "He said, \"it's a dog's life\".": "he said , `` it 's a dog 's life '' .",
    "I can't, won't and don't gonna do it; wanna?": "i ca n't , wo n't and do n't gon na do it ; "
    "wan na ?",
    "prices: $5.00, 10% off -- wow... ok": "prices : $ 5.00 , 10 % off -- wow ... ok",
    "The U.S. flag on Howe St. near Dr. Who": "the u.s. flag on howe st. near dr. who",
    "dogs' toys (really) [yes] {no} <b>": "dogs ' toys ( really ) [ yes ] { no } < b >",
    "They've seen she'd cannot gimme": "they 've seen she 'd can not gim me",
    "a 1,000 o'clock 5:30": "a 1,000 o'clock 5:30",
    "email a@b.c #tag & co*": "email a @ b.c # tag & co *",
    "ÉTÉ «quoted» text.": "été « quoted » text .",
    "   ": "",
}


def vocabulary():
    words = {word for text in NLTK.values() for word in text.split()}
    return sorted(words)


@pytest.fixture(scope="module")
def tokenizer():
    return VocabularyTokenizer(vocabulary(), max_words=24)


def expected(tokenizer, text):
    known = {word: 4 + place for place, word in enumerate(tokenizer.vocabulary)}
    ids = [1, *(known[word] for word in NLTK[text].split()), 2]
    return ids + [0] * (24 - len(ids))


@pytest.mark.parametrize("text", NLTK)
def test_words_are_nltks(tokenizer, text):
    np.testing.assert_array_equal(tokenizer([text])[0], expected(tokenizer, text))


def test_a_graph_gives_the_same(tokenizer):
    texts = list(NLTK)
    in_graph = tf.function(tokenizer)(tf.constant(texts))
    np.testing.assert_array_equal(in_graph, [expected(tokenizer, text) for text in texts])


def test_unknown_words_and_long_captions(tokenizer):
    found = tokenizer(["zebra " * 40])[0]
    np.testing.assert_array_equal(found, [1, *[3] * 22, 2])
    assert tokenizer.vocabulary_size() == 4 + len(vocabulary())


def test_it_is_saved(tokenizer):
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(tokenizer)))
    again = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(again(list(NLTK)), tokenizer(list(NLTK)))


def ids():
    words = ["<pad>", "<start>", "<end>", "<unk>", "a", "bird"]
    return {word: place for place, word in reversed(list(enumerate(words)))}


def test_published_files_are_read(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"word2idx": ids(), "idx": 6}))
    (tmp_path / "plain.json").write_text(json.dumps(ids()))
    stored = {"idx": 6, "word2idx": ids(), "idx2word": {5: "bird"}}
    (tmp_path / "vocab.pkl").write_bytes(pickle.dumps(stored))
    for name in ("vocab.json", "plain.json", "vocab.pkl"):
        found = read_vocabulary_tokenizer(tmp_path / name, max_words=6)
        np.testing.assert_array_equal(found(["A bird sings"]), [[1, 4, 5, 3, 2, 0]])


class Bad:
    def __reduce__(self):
        return open, ("ran", "w")


def test_bad_vocabularies_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "code.pkl"
    path.write_bytes(pickle.dumps({"word2idx": ids(), "more": Bad()}))
    with pytest.raises(InputError, match=r"code.pkl: .* it names (_?io|builtins).open, which is"):
        read_vocabulary_tokenizer(path)
    assert not (tmp_path / "ran").exists()
    gap = {**ids(), "bird": 9}
    for name, text in (("gap.json", json.dumps(gap)), ("list.json", "[1]"), ("no.json", "{")):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=name):
            read_vocabulary_tokenizer(tmp_path / name)
    with pytest.raises(InputError, match="none"):
        read_vocabulary_tokenizer(tmp_path / "none.json")


@pytest.mark.parametrize(("name", "size"), [("coco_vocab", 11755), ("cub_vocab", 2151)])
def test_pcmes_own_vocabularies(shared_data, name, size):
    found = read_vocabulary_tokenizer(shared_data / "vocabs" / "pcme_pkl" / f"{name}.json")
    assert found.vocabulary_size() == size
    assert (np.asarray(found(["a white bird ."]))[0, 1:5] > 3).all()
