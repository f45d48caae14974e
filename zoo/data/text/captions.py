"""Captions to word ids, in the graph and from raw strings."""

import functools
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from halo_search.errors import InputError
from halo_search.files.text_files import read_lines
from zoo.embeddings import Tensor
from zoo.images.seeding import uniform

PADDING_ID, UNKNOWN_ID = 0, 1
_DROP, _WORD, _DELETE = 11, 12, 13


class WordIds(NamedTuple):
    """Which ids of a tokenizer are words, `first` … `end` − 1 (None: not known), which stands for
    an `unknown` one, and which are `special` and never lost."""

    first: int = UNKNOWN_ID + 1
    end: int | None = None
    unknown: int = UNKNOWN_ID
    special: tuple[int, ...] = ()


def normalise(text: Tensor) -> tf.Tensor:
    """Lower case, and nothing but letters and digits with single spaces between the words:
    `bird's` is `birds`, `white-breasted` two words."""
    text = tf.strings.lower(text, encoding="utf-8")
    text = tf.strings.regex_replace(text, "['’]", "")
    return tf.strings.strip(tf.strings.regex_replace(text, r"[^\pL\pM\pN]+", " "))


@keras.saving.register_keras_serializable(package="halo")
class WordTokenizer(keras.layers.TextVectorization):
    """Strings to word ids: 0 is padding, 1 any unknown word, then the vocabulary.

    ```python
    zoo.data.WordTokenizer(["bird", "red"], max_words=4)(["a red bird"])  # [[1, 3, 2, 0]]
    ```

    Args:
        vocabulary: distinct normalised words, the id of the first is 2.
        max_words: the length of every row; longer captions are cut.
    Call arguments: strings `(batch,)`, as they come.
    Output: int32 `(batch, max_words)`.
    """

    def __init__(self, vocabulary: Sequence[str], max_words: int = 32, **kwargs: Any):
        super().__init__(
            standardize=normalise,
            output_sequence_length=max_words,
            vocabulary=list(vocabulary),
            **kwargs,
        )
        self.max_words = max_words

    @property
    def word_ids(self) -> WordIds:
        """The ids of words: all but padding and the unknown word."""
        return WordIds(end=self.vocabulary_size())

    @functools.cached_property
    def known_words(self) -> frozenset[str]:
        """The words that it knows; reading them takes as long as a search."""
        return frozenset(self.get_vocabulary(include_special_tokens=False))

    def call(self, inputs: Tensor) -> tf.Tensor:
        batch = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        # TextVectorization forgets the batch size, which a training step of fixed shapes needs.
        return tf.ensure_shape(tf.cast(super().call(inputs), tf.int32), (batch, self.max_words))

    def compute_output_spec(self, inputs: Any) -> keras.KerasTensor:
        return keras.KerasTensor((inputs.shape[0], self.max_words), dtype="int32")

    def get_config(self) -> dict[str, Any]:
        vocabulary = self.get_vocabulary(include_special_tokens=False)
        return {
            "name": self.name,
            "vocabulary": [str(word) for word in vocabulary],
            "max_words": self.max_words,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "WordTokenizer":
        return cls(**config)


def word_tokenizer(
    captions: Iterable[str], max_words: int = 32, min_count: int = 1
) -> WordTokenizer:
    """A `WordTokenizer` with the words of some captions that occur `min_count` times at least: give
    it the *training* captions only. Raises ValueError if no word is left."""
    counts = Counter()
    for start in range(0, len(captions), 65536):
        block = tf.constant(list(captions[start : start + 65536]), tf.string)
        counts.update(word for text in normalise(block).numpy() for word in text.split())
    words = sorted(
        (word for word, count in counts.items() if count >= min_count),
        key=lambda word: (-counts[word], word),
    )
    if not words:
        raise ValueError(
            f"`captions` must have words that occur at least {min_count} times; "
            f"received {len(captions)} captions without any"
        )
    return WordTokenizer([word.decode("utf-8") for word in words], max_words=max_words)


def token_ids(tokenizer: Any, captions: Sequence[str]) -> np.ndarray:
    """The ids of many captions as one int32 array `(M, max_words)`."""
    blocks = [
        np.asarray(tokenizer(tf.constant(list(captions[start : start + 8192]), tf.string)))
        for start in range(0, len(captions), 8192)
    ]
    return np.concatenate(blocks).astype(np.int32)


def word_vectors(
    glove: str | os.PathLike | None, tokenizer: WordTokenizer, word_dim: int, seed: int = 0
) -> tuple[np.ndarray | None, int]:
    """What a builder takes as `word_vectors` and `word_dim`: of a file, or None and the dim."""
    if not glove:
        return None, word_dim
    matrix, coverage = read_glove(glove, tokenizer, seed)
    print(f"{glove}: vectors of {coverage:.1%} of the vocabulary")
    return matrix, matrix.shape[1]


def read_glove(
    path: str | os.PathLike, tokenizer: WordTokenizer, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Word vectors from a text file for a tokenizer: float32 `(vocabulary_size, dim)`, padding all
    zero, and the fraction of the vocabulary that was found.

    Lines are `word number number …`, as GloVe and word2vec's text form have them. Absent words are
    normal, with the mean and the standard deviation of those found. Raises InputError if a line has
    another number of values, or one that is no number, or no word of the vocabulary is there.
    """
    words = {word: row for row, word in enumerate(tokenizer.get_vocabulary()) if row >= 2}
    vectors, dim = {}, None
    for line, text in enumerate(read_lines(path), start=1):
        if line == 1 and len(text.split()) == 2:
            continue
        dim = dim or len(text.split()) - 1
        word, *values = text.rstrip().rsplit(" ", dim)  # words may hold spaces, as in GloVe 840B
        if len(values) != dim or not dim:
            raise InputError(
                f"{path}:{line}: expected a word and {dim} numbers, found {text[:60]!r}"
            )
        if word not in words or word in vectors:
            continue
        try:
            vectors[word] = np.array(values, np.float32)
        except ValueError:
            raise InputError(f"{path}:{line}: expected {dim} numbers after {word!r}") from None
    if not vectors:
        raise InputError(f"{path}: none of the {len(words):,} words of the vocabulary is there")
    known = np.stack(list(vectors.values()))
    matrix = np.random.default_rng(seed).normal(
        known.mean(), known.std(), (tokenizer.vocabulary_size(), dim)
    )
    for word, vector in vectors.items():
        matrix[words[word]] = vector
    matrix[PADDING_ID] = 0.0
    return matrix.astype(np.float32), len(vectors) / len(words)


def drop_words(ids, rate, seed, mode="mask", words=None, shard=(0, 1)):
    """Loses each word of ids `(batch, length)`, padded with 0 at the end, with the probability
    `rate`: `"mask"` makes it unknown, `"random"` a random word; `"delete"` moves the rest up, and
    the first word stays when all would go. `words` are a tokenizer's `word_ids`; seed and shard as
    of `seeding.uniform`.

    Reference: PCME (Chun et al., CVPR 2021) section 4.1; PCME++ (Chun, ICLR 2024) table B.1.
    """
    words = words or WordIds()
    rows, length = ids.shape
    is_word = _is_word(ids, words)
    lost = is_word & (uniform(seed, _DROP, rows, length, shard) < rate)
    if mode == "mask":
        return tf.where(lost, words.unknown, ids)
    if mode == "random":
        draws = uniform(seed, _WORD, rows, length, shard) * float(words.end - words.first)
        return tf.where(lost, words.first + tf.cast(draws, ids.dtype), ids)
    all_lost = tf.reduce_all(lost | ~is_word, axis=1, keepdims=True)
    first = tf.cumsum(tf.cast(is_word, tf.int32), axis=1) == 1
    return _without(ids, lost & ~(all_lost & first))


def delete_words(ids, share, seed, words=None, shard=(0, 1)):
    """Deletes int(share · L) random ones of the L words of each caption; else as `drop_words`."""
    is_word = _is_word(ids, words or WordIds())
    draws = tf.where(is_word, uniform(seed, _DELETE, *ids.shape, shard), 2.0)
    rank = tf.argsort(tf.argsort(draws, axis=1), axis=1)
    count = share * tf.reduce_sum(tf.cast(is_word, tf.float32), axis=1, keepdims=True)
    return _without(ids, rank < tf.cast(count, tf.int32))


def _is_word(ids, words):
    """bool, as `ids`: neither padding nor a special token."""
    is_word = ids != PADDING_ID
    for special in words.special:
        is_word = is_word & (ids != special)
    return is_word


def _without(ids, lost):
    """int32 (batch, words): `ids` without those that are `lost`; the rest moves to the front."""
    keep = (ids != PADDING_ID) & ~lost
    order = tf.argsort(tf.cast(~keep, tf.int32), axis=1, stable=True)
    return tf.gather(tf.where(keep, ids, PADDING_ID), order, axis=1, batch_dims=1)
