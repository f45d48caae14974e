"""The words of a question: which name something, their stems, whether they are few."""

import functools
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

# English words that name nothing: every vocabulary of captions has them.
_LISTED = (
    "a an and are as at be by for from has have in is it its of on or that the there this to was "
    "were which while with"
)
FUNCTION_WORDS = frozenset(_LISTED.split())

MOST_WORDS = 3  # stems of a short question
ARTICLES = ("a", "an", "the")
IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "feet": "foot",
    "teeth": "tooth",
    "geese": "goose",
    "mice": "mouse",
    "leaves": "leaf",
    "knives": "knife",
    "wolves": "wolf",
    "shelves": "shelf",
    "loaves": "loaf",
    "buses": "bus",
    "wives": "wife",
    "calves": "calf",
    "halves": "half",
}


@functools.lru_cache(256)  # a question's are looked at by its preambles, its prior and the judge
def words_of(text: str) -> tuple[str, ...]:
    """The words that `normalise` leaves of one text, without a graph: a search takes less time."""
    text = text.lower().replace("'", "").replace("’", "")
    kept = (c if c.isalnum() or unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return tuple("".join(kept).split())


def unknown_words(reader: Any, texts: Sequence[str]) -> tuple[np.ndarray, list[list[str]] | None]:
    """How many words of texts name something, and which of those are not known.

    Args:
        reader: a tokenizer, or what is stored of one. Its `known_words` are its vocabulary; None,
            or no such attribute, of one that spells every word out of pieces, as CLIP's and BERT's.
        texts: strings, as they come.

    Returns:
        `(words, unknown)`, int `(len(texts),)`, and for each text the list of its unknown words,
        normalised; None where every word is spelled. All words count, also those that are cut, but
        for `FUNCTION_WORDS`.
    """
    found = [[word for word in words_of(text) if word not in FUNCTION_WORDS] for text in texts]
    words, known = np.array([len(one) for one in found]), getattr(reader, "known_words", None)
    if known is None:
        return words, None
    return words, [[word for word in one if word not in known] for one in found]


def stem(word: str) -> str:
    """A word without its plural's ending.

    Reference: Harman, "How effective is suffixing?", JASIS 1991, the S stemmer.
    """
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("us", "ss", "is")):
        return word[:-1]
    return word


def stems(text: str) -> list[str]:
    """The stems of the words of a text that name something, each once, in order."""
    found = (stem(word) for word in words_of(text) if word not in FUNCTION_WORDS)
    return list(dict.fromkeys(found))


def is_short(text: str) -> bool:
    """Whether a question is a few words, of which a prior is counted, and no sentence.

    Up to three words that name something are few; a full stop makes a sentence of them.
    """
    return 1 <= len(stems(text)) <= MOST_WORDS and not text.rstrip().endswith(".")
