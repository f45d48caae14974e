"""BERT's WordPiece tokenizer from its vocabulary file, in Python and in a graph."""

import functools
import os
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from halo_search.errors import InputError, require
from halo_search.files.json_files import read_object
from halo_search.files.text_files import read_lines
from zoo.data.text.captions import WordIds
from zoo.embeddings import Tensor
from zoo.encoders.sentence import text_folder
from zoo.encoders.subwords import SubwordTokenizer

PAD, UNKNOWN, START, END, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY_FILES = ("vocab.txt", "tokenizer.json", "assets/tokenizer/vocabulary.txt")
_MOST = 100  # bytes of a word; a longer one is unknown
# Of the original BERT: all of them are words of their own.
_CJK = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
# Unicode's "default ignorable", of those that are neither marks nor format characters.
_IGNORED = re.compile("[\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]")
_ASCII = re.compile("[!-/:-@\\[-`{-~]")


@keras.saving.register_keras_serializable(package="halo")
class BertTokenizer(SubwordTokenizer):
    """Strings to BERT's token ids: `[CLS]`, word pieces, `[SEP]`, then zeros.

    ```python
    pieces = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "bird", "##s"]
    zoo.data.BertTokenizer(pieces, max_words=6)(["a birds"])  # [[3, 6, 7, 8, 4, 0]]
    ```

    Letters are lowered and lose their accents, as for `bert-base-uncased`. In a graph, such as a
    SavedModel, it needs the extra `text`.

    Args:
        vocabulary: list of word pieces with BERT's special tokens, `[PAD]` first.
        max_words: the length of every row; longer captions are cut before `[SEP]`.
    Call arguments: strings `(batch,)`, as they come.
    Output: int32 `(batch, max_words)`.
    Reference: Devlin et al., "BERT" (NAACL 2019); Wu et al. (2016) for word pieces.
    """

    def __init__(self, vocabulary: Sequence[str], max_words: int = 64, **kwargs: Any):
        self.vocabulary = list(vocabulary)
        absent = [token for token in SPECIAL if token not in self.vocabulary]
        if absent or self.vocabulary[0] != PAD:
            raise ValueError(
                f"`vocabulary` must begin with {PAD} and hold {', '.join(SPECIAL)}; received one "
                f"that begins with {self.vocabulary[:1]} and lacks {', '.join(absent) or 'none'}"
            )
        ends = (self.vocabulary.index(START), self.vocabulary.index(END))
        super().__init__(None, ends, max_words, **kwargs)
        self._ids = _WordPieceIds(self.vocabulary, UNKNOWN)

    def vocabulary_size(self) -> int:
        return len(self.vocabulary)

    @property
    def word_ids(self) -> WordIds:
        """The ids of words, which follow BERT's special and unused ones."""
        reserved = [
            number
            for number, token in enumerate(self.vocabulary)
            if token in SPECIAL or token.startswith("[unused")
        ]
        mask = self.vocabulary.index(MASK)
        return WordIds(max(reserved) + 1, len(self.vocabulary), mask, self.ends)

    def call(self, inputs: Any) -> Tensor:
        text = tf.convert_to_tensor(inputs, tf.string)
        if tf.is_symbolic_tensor(text):
            with tf.init_scope():  # what it reads must be made outside of the graph
                _in_tensorflow(tuple(self.vocabulary))
            return super().call(text)
        room, (start, end) = self.max_words - 2, self.ends
        rows = np.full((len(text), self.max_words), self.padding, np.int32)
        for row, string in zip(rows, text.numpy(), strict=True):
            ids = [start, *self._ids(string.decode("utf-8", "replace"))[:room], end]
            row[: len(ids)] = ids
        return tf.constant(rows)

    def tokens(self, text: Tensor) -> Tensor:
        return _in_tensorflow(tuple(self.vocabulary))(text)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "vocabulary": self.vocabulary, "max_words": self.max_words}


def read_bert_tokenizer(path: str | os.PathLike, max_words: int = 64) -> BertTokenizer:
    """A `BertTokenizer` from `vocab.txt`, a word piece a line; `tokenizer.json` of Hugging Face; a
    folder with one of them, or with a KerasHub preset; or a name on Hugging Face, fetched once.
    Raises InputError if it cannot be read, or holds no vocabulary of lower-cased word pieces."""
    path = text_folder(path)
    if path.is_dir():
        path = _vocabulary_file(path)
    vocabulary = _pieces_of_json(path) if path.suffix == ".json" else read_lines(path)
    seen = {}
    for line, token in enumerate(vocabulary, start=1):
        if not token.strip():
            raise InputError(f"{path}:{line}: an empty line")
        if token in seen:
            raise InputError(f"{path}:{line}: {token!r} is also in line {seen[token]}")
        seen[token] = line
    try:
        return BertTokenizer(vocabulary, max_words)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


@functools.lru_cache(4)  # not an attribute, which Keras would save
def _in_tensorflow(vocabulary):
    """KerasHub's tokenizer, of operations that a SavedModel can keep."""
    require("tensorflow_text", extra="models")
    return require("keras_hub", extra="models").tokenizers.WordPieceTokenizer(
        list(vocabulary), lowercase=True, strip_accents=True, oov_token=UNKNOWN
    )


def _vocabulary_file(folder):
    """The vocabulary of a folder; an InputError if it has none."""
    for name in VOCABULARY_FILES:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder}: expected one of {', '.join(VOCABULARY_FILES)}; found none")


def _pieces_of_json(path):
    """The word pieces of a `tokenizer.json` in the order of their ids. Raises InputError unless it
    is a lower-casing WordPiece."""
    stored = read_object(path)
    model, normalizer = stored.get("model"), stored.get("normalizer")
    ids = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(ids, dict) or model.get("type", "WordPiece") != "WordPiece":
        raise InputError(f"{path}: expected a `model` of type WordPiece with a `vocab`")
    if not isinstance(normalizer, dict) or normalizer.get("lowercase") is not True:
        raise InputError(
            f"{path}: expected a `normalizer` with `lowercase` true; received {normalizer!r}"
        )
    are_integers = all(type(number) is int for number in ids.values())
    if not are_integers or sorted(ids.values()) != list(range(len(ids))):
        raise InputError(f"{path}: expected the ids 0 to {len(ids) - 1} in `vocab`, each once")
    return sorted(ids, key=ids.get)


class _WordPieceIds:
    """Strings to lists of ids, those of TensorFlow Text in a graph: letters lowered and
    without accents, words cut into the longest pieces of the vocabulary from their start."""

    def __init__(self, vocabulary, unknown):
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = [self._ids[unknown]]
        self._longest = max(map(len, self._ids))
        self._of_word = functools.lru_cache(1 << 16)(self._pieces)

    def __call__(self, text):
        text = text.partition("\0")[0]  # where TensorFlow Text ends
        text = unicodedata.normalize("NFD", _CJK.sub(r" \1 ", text))
        return [number for word in _words(text) for number in self._of_word(word)]

    def _pieces(self, word):
        """The ids of a word's pieces, the longest first from the left; the unknown token's alone if
        some part has no piece."""
        word = _folded(word)
        if len(word.encode("utf-8")) > _MOST:
            return self._unknown
        pieces, start, prefix = [], 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            pieces.append(number)
            start, prefix = end, "##"
        return pieces


def _words(text):
    """Words and marks of punctuation."""
    word = ""
    for letter in text:
        kind = _kind(letter)
        if kind == "letter":
            word += letter
        elif kind != "accent":
            if word:
                yield word
            word = ""
            if kind == "mark":
                yield letter
    if word:
        yield word


@functools.cache
def _kind(letter):
    """What BERT does with a letter: "accent" is dropped, "space" separates words, "mark" is a word
    of its own, "letter" is part of one."""
    category = unicodedata.category(letter)
    if category == "Mn":
        return "accent"
    if _ASCII.match(letter) or category[0] == "P":
        return "mark"
    if letter in " \t\n\r\f" or category in ("Cc", "Cf"):
        return "space"
    return "mark" if _CJK.match(letter) else "letter"


def _folded(word):
    """The word in NFKC_Casefold."""
    word = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    return _IGNORED.sub("", word)
