"""Words of one meaning: what captions may call what a question names otherwise."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halo_search.confidence.words import is_short, named_words, packaged_bank, stem, stems
from halo_search.embeddings.arrays import unit

# Cosine of two words' embeddings from which captions may use either. Of 0.55, 0.6, 0.65 and 0.75
# the best log loss by cross-validation over the eye labels that teach.
ALIKE = 0.65
LEAST_SEEN = 5  # captioned photos with a word that has a vector

# Of each word of a question that names something, the stems that captions may use for it.
Senses = list[frozenset[str]]


def spelled(text: str) -> Senses:
    """The words of a text as they are spelled: each has its stem alone."""
    return [frozenset([one]) for one in stems(text)]


def worded() -> list[str]:
    """The words of captions that get a vector, in order."""
    counts = packaged_bank().words
    return [word for word, count in counts.items() if count >= LEAST_SEEN and word.isalpha()]


@dataclasses.dataclass(frozen=True, eq=False)
class Lexicon:
    """Words of captions and their directions, as a model's questions are embedded.

    ```python
    lexicon = Lexicon(["couch", "dog"], np.eye(2))
    lexicon.senses("a sofa", {"sofa": np.array([1.0, 0.1])})  # [{"sofa", "couch"}]
    ```

    Attributes:
        words: W words.
        vectors: `(W, dim)`, their embeddings' means, of any length.
    """

    words: Sequence[str]
    vectors: np.ndarray

    def unknown(self, texts: Sequence[str]) -> list[str]:
        """The words of texts that name something and have no vector here, each once."""
        named = dict.fromkeys(word for text in texts for word in named_words(text))
        return [word for word in named if word not in self._row]

    def senses(self, text: str, others: dict[str, Any] | None = None) -> Senses:
        """Of each word of a text that names something, its stem and those of words that are alike;
        `others` are vectors `(dim,)` of words that have none here."""
        others = {} if others is None else others
        found = []
        for word in _one_per_stem(text):
            if word in self._row:
                found.append(self._alike_known(word))
            elif word in others:
                found.append(self._alike(word, unit(np.asarray(others[word], np.float32)[None])[0]))
            else:
                found.append(frozenset([stem(word)]))
        return found

    def senses_of(self, texts: Sequence[str], encode: Callable[[list[str]], Any]) -> list[Senses]:
        """`senses` of short questions, and of sentences, which name more, each word as it is
        spelled; `encode` embeds words that have no vector here, `(n, dim)`."""
        short = [text for text in texts if is_short(text)]
        words = self.unknown(short) if len(self.words) else []
        others = dict(zip(words, encode(words), strict=True)) if words else {}
        return [self.senses(text, others) if is_short(text) else spelled(text) for text in texts]

    def _alike_known(self, word):
        senses = self._kept.get(word)
        if senses is None:
            senses = self._kept[word] = self._alike(word, self.directions[self._row[word]])
        return senses

    def _alike(self, word, direction):
        rows = np.flatnonzero(self.directions @ direction >= ALIKE)
        return frozenset([stem(word), *(stem(self.words[row]) for row in rows)])

    @functools.cached_property
    def _kept(self):
        return {}

    @functools.cached_property
    def _row(self):
        return {word: row for row, word in enumerate(self.words)}

    @functools.cached_property
    def directions(self):
        """The words' directions, `(W, dim)` float32."""
        return unit(np.asarray(self.vectors, np.float32))


NO_WORDS = Lexicon([], np.empty((0, 0)))


def _one_per_stem(text):
    """The words of a text that name something, the first of each stem, in order."""
    first = {}
    for word in named_words(text):
        first.setdefault(stem(word), word)
    return list(first.values())
