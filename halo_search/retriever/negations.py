"""Negations that one word says: a man without a shirt is a shirtless man."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from halo_search.confidence.senses import ALIKE, Lexicon
from halo_search.confidence.words import stem
from halo_search.embeddings.arrays import unit

_NEGATION = re.compile(
    r"\s*\b(?:without|with no|wearing no|not wearing)\s+"
    r"(?:(?:an?|any|the|his|her|their|its)\s+)?(?P<thing>\w+)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^(?:(?:an?|the|one|two|three|four|five|some|many)\s+)?", re.IGNORECASE)


def affirmed(text: str, lexicon: Lexicon, encode: Callable[[list[str]], Any]) -> str:
    """A text with a negation put as captions put it: by one word, where they have one.

    Embeddings hardly read "without": they place "a man without a shirt" beside men in shirts. Of
    the words of captions the one is taken whose vector is nearest to that of "without shirt". It
    has to be nearer than words of other meanings are, by `ALIKE`, and nearer to that than to
    "shirt".

    Args:
        text: the question.
        lexicon: words of captions; without any the text stays.
        encode: embeds texts, `(n, dim)`.
    """
    match = _NEGATION.search(text) if len(lexicon.words) else None
    if match is None:
        return text
    word = _word_for(match["thing"], lexicon, encode)
    if word is None:
        return text
    rest = f"{text[: match.start()]}{text[match.end() :]}".strip()
    return _FIRST.sub(lambda first: f"{first[0]}{word} ", rest, count=1).strip()


def _word_for(thing, lexicon, encode):
    """The word of captions that says that a thing is lacking, or None."""
    lacking, there = unit(np.asarray(encode([f"without {thing}", thing]), np.float32))
    likeness = lexicon.directions @ lacking
    is_said = (likeness >= ALIKE) & (likeness > lexicon.directions @ there)
    ranked = [lexicon.words[row] for row in np.argsort(-likeness) if is_said[row]]
    others = (word for word in ranked if stem(word) not in (stem(thing), "without"))
    return next(others, None)
