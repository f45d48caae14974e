"""Tokens of words and of their pieces."""

import gzip
import json
import pickle
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from halo_search.errors import InputError
from zoo.data import VocabularyTokenizer, captions, read_vocabulary_tokenizer
from zoo.data.text.bert_tokenizer import BertTokenizer, _in_tensorflow, read_bert_tokenizer
from zoo.data.text.clip_tokenizer import read_clip_tokenizer

MERGES = '"version\nt h\nth e</w>\nd o\ndo g</w>\na n\nan d</w>\n! !</w>\n1 2</w>\n'
PIECES = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
          "the", "dog", "##s", "cafe", "!", "1", "##2"]  # fmt: skip
HARD = [
    "a photo of 123 dogs in 2017, 12 and 1 2",
    "HELLO World ÀÉÎ THE DOG",
    "café naïve Ångström e\u0301clair",
    "😀 a dog 🐕‍🦺 runs 👨‍👩‍👧!!",
    "it's the dog's 'stop' they'll I'VE  's 'tis",
    "a\u00a0b\u3000c\u2009d\te\nf",
    "",
    "   ",
    "!!! !? ?! ...!",
    "x" * 60,
    "中文字 日本語 ١٢٣ ½ ² Straße İstanbul",
    "<|endoftext|> a <|startoftext|>",
    "a-b_c/d #tag @you don't—won’t",
    " ".join(f"word{number} Dog's" for number in range(500)),
]


@pytest.fixture(scope="module", params=["clip", "bert"])
def small(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "words.txt"
    if request.param == "clip":
        path.write_text(MERGES)
        return read_clip_tokenizer(path, max_words=24)
    path.write_text("\n".join(PIECES) + "\n")
    return read_bert_tokenizer(path, max_words=24)


@pytest.fixture(scope="module")  # CLIP's is asked in tests/checkpoints/test_tokenizers.py
def real(shared_data):
    return read_bert_tokenizer(shared_data / "vocabs" / "bert-base-uncased" / "vocab.txt")


def _eager(tokenizer, texts):
    rows = np.zeros((len(texts), tokenizer.max_words), np.int32)
    hub = tokenizer.tokenizer or _in_tensorflow(tuple(tokenizer.vocabulary))
    for row, ids in zip(rows, hub(list(texts)), strict=True):
        whole = [tokenizer.ends[0], *ids[: tokenizer.max_words - 2], tokenizer.ends[1]]
        row[: len(whole)] = whole
    return rows


def test_graph_equals_eager_on_hard_text(small):
    expected = _eager(small, HARD)
    np.testing.assert_array_equal(small(tf.constant(HARD)), expected)
    np.testing.assert_array_equal(small(HARD), expected)
    dataset = tf.data.Dataset.from_tensor_slices(HARD).batch(4).map(small)
    np.testing.assert_array_equal(np.concatenate(list(dataset.as_numpy_iterator())), expected)
    np.testing.assert_array_equal(captions.token_ids(small, HARD), expected)
    assert (expected[-1] != 0).all()  # cut before the end, which is still there
    assert expected[-1, -1] == small.ends[1]
    assert (expected[HARD.index("")][:3] == [*small.ends, 0]).all()


def test_word_pieces_in_python_are_those_of_a_graph():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary += [prefix + letter for prefix in ("", "##") for letter in "abcdefgiosäß1२дあ가中"]
    tokenizer = BertTokenizer(vocabulary, max_words=24)
    rng = np.random.default_rng(0)
    ranges = [(0, 0x250), (0x300, 0x600), (0x1100, 0x1200), (0x2000, 0x2C00), (0x3000, 0x3200)]
    ranges += [(0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0x10000), (0x1D400, 0x1D800)]
    ranges += [(0x1F300, 0x1F700), (0x20000, 0x20100), (0x2F800, 0x2FA20), (0xE0000, 0xE0080)]
    texts = [b"\xff dog", b"a\0b", b""]
    for _ in range(3000):
        letters = (chr(rng.integers(*ranges[rng.integers(len(ranges))])) for _ in range(6))
        text = "".join(one + rng.choice(["", "", "a", " a", " is "]) for one in letters)
        texts.append(text.encode("utf-8"))
    in_graph = tf.function(lambda inputs: tokenizer(inputs))
    found = tokenizer(tf.constant(texts)).numpy()
    np.testing.assert_array_equal(found, in_graph(tf.constant(texts)))
    assert (found > 4).any(axis=1).mean() > 0.5  # not all are unknown


def test_graph_equals_eager_on_real_captions(real, shared_data):
    path = shared_data / "flickr30k_text" / "flickr30k_karpathy_captions.json.gz"
    entries = json.loads(gzip.decompress(path.read_bytes())).values()
    texts = [caption for entry in entries for caption in entry["captions"]][:10_000:16]
    assert len(texts) == 625
    np.testing.assert_array_equal(captions.token_ids(real, texts), _eager(real, texts))
    np.testing.assert_array_equal(real(HARD), _eager(real, HARD))


def test_known_ids(real):
    ids = np.asarray(real(["a photo of a cat"]))[0]
    official = [101, 1037, 6302, 1997, 1037, 4937, 102]
    assert [number for number in ids if number] == official


def test_small_vocabularies_by_hand(small):
    ids = np.asarray(small(["The dogs, 12 DOG!!"]))[0]
    if small.vocabulary_size() == len(PIECES):
        expected = [3, 6, 7, 8, 2, 11, 12, 7, 10, 10, 4]
    else:
        words = small.vocabulary
        pieces = ["<|startoftext|>", "the</w>", "do", "g", "s</w>", ",</w>", "1</w>", "2</w>",
                  "dog</w>", "!!</w>", "<|endoftext|>"]  # fmt: skip
        expected = [words[piece] for piece in pieces]
    assert list(ids) == expected + [0] * (24 - len(expected))


def test_bad_files(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("header\nt h\nthree parts here\n")
    with pytest.raises(InputError, match=re.escape(f"{path}:3: expected two symbols")):
        read_clip_tokenizer(path)
    for lines, why in (
        (PIECES[1:], "must begin with"),
        ([*PIECES, "dog"], ":14: 'dog' is also in line 8"),
        ([*PIECES, ""], ":14: an empty line"),
    ):
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(InputError, match=why):
            read_bert_tokenizer(path)
    path.write_text("\n".join(PIECES))
    with pytest.raises(ValueError, match="`max_words` must be at least 3"):
        read_bert_tokenizer(path, max_words=2)
    with pytest.raises(InputError, match="No such file"):
        read_bert_tokenizer(tmp_path / "none.txt")


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
