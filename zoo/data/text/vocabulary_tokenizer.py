"""NLTK's words of a caption to ids of a published vocabulary, in the graph."""

import json
import os
import pathlib
import pickle
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from halo_search.errors import InputError
from zoo.data.text.captions import WordIds
from zoo.embeddings import Tensor
from zoo.encoders.subwords import SubwordTokenizer

PADDING, START, END, UNKNOWN = SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")
# NLTK's word tokenizer, step by step. Its look-aheads are written out, since RE2 has none.
_STEPS = (
    (r"([«“‘„]|[`]+)", r" \1 "),
    (r'^"', "``"),
    (r"(``)", r" \1 "),
    (r"([ (\[{<])(\"|'{2})", r"\1 `` "),
    (r"(')([0-9_a-ce-lo-ru-z])\b", r"\1 \2"),
    (r"([^.])(\.)([\])}>\"'»”’ ]*)\s*$", r"\1 \2 \3 "),
    # Where a sentence ends within: not after an initial or one of these.
    (r"(^|\s)((?:[a-z]\.)*[a-z]|st|ave|dr|mr|mrs|ms|jr|sr|vs)\.(\s)", r"\1\2" + "\x01" + r"\3"),
    (r"([^.])(\.)([\])}>\"'»”’]*)(\s)", r"\1 \2 \3 \4"),
    (r"([:,])([^\d])", r" \1 \2"),
    (r"([:,])$", r" \1 "),
    (r"(\.{2,}|[;@#$%&?!*])", r" \1 "),
    (r"([^'])' ", r"\1 ' "),
    (r"([\]\[(){}<>]|--)", r" \1 "),
    (r"^(.*)$", r" \1 "),
    (r"([»”’])", r" \1 "),
    (r"''|\"", " '' "),
    (r"([^' ])('s|'m|'d|') ", r"\1 \2 "),
    (r"([^' ])('ll|'re|'ve|n't) ", r"\1 \2 "),
    (r"\b(can)(not)\b|\b(d)('ye)\b|\b(gim)(me)\b", r" \1\3\5 \2\4\6 "),
    (r"\b(gon)(na)\b|\b(got)(ta)\b|\b(lem)(me)\b", r" \1\3\5 \2\4\6 "),
    (r"\b(more)('n)\b", r" \1 \2 "),
    (r"\b(wan)(na)(\s)", r" \1 \2 \3"),
    (r" ('t)(is|was)\b", r" \1 \2 "),
    (r"\x01", "."),
)


@keras.saving.register_keras_serializable(package="halo")
class VocabularyTokenizer(SubwordTokenizer):
    """Strings to the ids of `<start>`, NLTK's words, `<end>`, as VSE++, PCME and SGRAF read them.

    ```python
    words = zoo.data.VocabularyTokenizer(["a", "bird", "."], max_words=6)
    words(["A bird."])  # [[1, 4, 5, 6, 2, 0]]
    ```

    Args:
        vocabulary: the words from id 4 on; 0 to 3 are `<pad>`, `<start>`, `<end>`, `<unk>`.
        max_words: the length of every row; longer captions are cut before the end.
    Call arguments: strings `(batch,)`, as they come.
    Output: int32 `(batch, max_words)`.
    Released code differs: NLTK's sentence model knows more abbreviations, whose period stays with
        the word; elsewhere a period before a space is a word of its own.
    """

    def __init__(self, vocabulary: Sequence[str], max_words: int = 64, **kwargs: Any):
        self.vocabulary = list(vocabulary)
        lookup = keras.layers.StringLookup(vocabulary=self.vocabulary, mask_token=None)
        super().__init__(lookup, (SPECIAL.index(START), SPECIAL.index(END)), max_words, **kwargs)

    def vocabulary_size(self) -> int:
        return len(SPECIAL) + len(self.vocabulary)

    @property
    def word_ids(self) -> WordIds:
        """The ids of words, which follow the special ones."""
        unknown = SPECIAL.index(UNKNOWN)
        return WordIds(len(SPECIAL), self.vocabulary_size(), unknown, self.ends)

    def tokens(self, text: Tensor) -> Tensor:
        """Ids of the words of texts `(n,)`, ragged `(n, words)`."""
        text = tf.strings.lower(text, encoding="utf-8")
        for pattern, instead in _STEPS:
            text = tf.strings.regex_replace(text, pattern, instead)
        words = tf.strings.split(text)
        # The lookup's 0 is any unknown word.
        return words.with_values(self.tokenizer(words.values) + SPECIAL.index(UNKNOWN))

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "vocabulary": self.vocabulary, "max_words": self.max_words}


def read_vocabulary_tokenizer(path: str | os.PathLike, max_words: int = 64) -> VocabularyTokenizer:
    """A `VocabularyTokenizer` from a JSON file with `word2idx`, as VSE++'s
    `coco_precomp_vocab.json`, or a pickled dict with it, as PCME's `coco_vocab.pkl`. Raises
    InputError if it cannot be read, is no such vocabulary, or is a pickle that names a class."""
    path = pathlib.Path(os.fspath(path)).expanduser()
    try:
        with path.open("rb") as stored:
            content = json.load(stored) if path.suffix == ".json" else _Plain(stored).load()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # of json and pickle
        raise InputError(f"{path}: cannot be read as a vocabulary: {error}") from error
    ids = content.get("word2idx", content) if isinstance(content, dict) else None
    return of_word_ids(ids, path, max_words)


def of_word_ids(ids: Any, path: pathlib.Path, max_words: int) -> VocabularyTokenizer:
    """A `VocabularyTokenizer` from a dict of words to ids, which is from `path`."""
    kinds = ids.items() if isinstance(ids, dict) else [(None, None)]
    are_ids = all(isinstance(word, str) and isinstance(number, int) for word, number in kinds)
    words = sorted(ids, key=ids.get) if are_ids else []
    if tuple(words[: len(SPECIAL)]) != SPECIAL or sorted(ids.values()) != list(range(len(ids))):
        raise InputError(
            f"{path}: expected `word2idx` from words to 0, 1, …, of which {', '.join(SPECIAL)} are "
            "the first"
        )
    return VocabularyTokenizer(words[len(SPECIAL) :], max_words)


class _Plain(pickle.Unpickler):
    """Reads dicts, lists, strings and numbers; anything that would run code is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is not loaded")
