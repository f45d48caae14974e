"""Short questions as people type them: nouns, and phrases that end in one, cut out of captions."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from zoo.questions.words import FUNCTION_WORDS, MOST_WORDS, stems, words_of

LEAST = 5  # times that a noun stands in the captions
AFTER, BEFORE = 0.15, 0.4  # shares of a noun's places after an article, and before no other word
_ARTICLES = {"a", "an", "the", "one", "two", "three", "some", "his", "her", "their", "its"}


def nouns_of(captions: Sequence[str]) -> set[str]:
    """Words that captions use as nouns: they follow articles, and no word of a name follows them.

    Args:
        captions: English ones; others have no such words.
    """
    places, after, before = Counter(), Counter(), Counter()
    for caption in captions:
        words = words_of(caption)
        for i, word in enumerate(words):
            if word in FUNCTION_WORDS:
                continue
            places[word] += 1
            after[word] += i > 0 and words[i - 1] in _ARTICLES
            before[word] += i + 1 == len(words) or words[i + 1] in FUNCTION_WORDS
    return {
        word
        for word, count in places.items()
        if count >= LEAST
        and after[word] >= AFTER * count
        and before[word] >= BEFORE * count
        and not word.endswith("ing")
    }


def short_questions(
    captions: Sequence[str], rng: np.random.Generator, each: int, nouns: set[str] | None = None
) -> list[str]:
    """Questions of one, two and three content words, cut out of captions so that a noun ends them.

    Args:
        captions: strings.
        rng: a `numpy.random.Generator`.
        each: how many of each length at most.
        nouns: of `nouns_of`; default: those of these captions.

    Returns:
        Distinct strings in lower case, the shorter ones first.
    """
    found, nouns = {}, nouns_of(captions) if nouns is None else nouns
    for count in range(1, MOST_WORDS + 1):
        kept = {}
        for _ in range(100 * each):
            words = words_of(captions[int(rng.integers(len(captions)))])
            width = 1 if count == 1 else int(rng.integers(count, count + 3))
            if len(words) < width:
                continue
            start = int(rng.integers(len(words) - width + 1))
            cut = words[start : start + width]
            if cut[0] in FUNCTION_WORDS or cut[-1] not in nouns:
                continue
            text = " ".join(cut)
            if len(stems(text)) == count:
                kept.setdefault(text)
            if len(kept) == each:
                break
        found |= kept
    return list(found)


def held_stems(captions: Sequence[str], owners: Sequence[int], num_images: int) -> list[set[str]]:
    """The stems that each image's captions hold.

    Args:
        captions: M strings.
        owners: the row of each caption's image.
        num_images: how many sets.
    """
    held = [set() for _ in range(num_images)]
    for caption, owner in zip(captions, owners, strict=True):
        held[owner] |= set(stems(caption))
    return held
