"""Short texts cut from captions: questions as people type them, phrases, and made-up ones."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from halo_search.confidence.words import FUNCTION_WORDS, MOST_WORDS, stems, words_of
from zoo.data.text.captions import UNKNOWN_ID, WordIds

LEAST = 5  # times that a noun stands in the captions
AFTER, BEFORE = 0.15, 0.4  # shares of a noun's places after an article, and before no other word
_ARTICLES = {"a", "an", "the", "one", "two", "three", "some", "his", "her", "their", "its"}


def nouns_of(captions: Sequence[str]) -> set[str]:
    """Words that English captions use as nouns: behind articles, and before no word of a name."""
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


def short_questions(captions, rng, each):
    """Questions of one to three content words, cut out of captions so that a noun ends them."""
    questions, nouns = {}, nouns_of(captions)
    for count in range(1, MOST_WORDS + 1):
        frequent = {}
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
                frequent.setdefault(text)
            if len(frequent) == each:
                break
        questions |= frequent
    return list(questions)


def held_stems(captions: Sequence[str], owners: Sequence[int], num_images: int) -> list[set[str]]:
    """The stems that each image's captions hold; `owners` is the row of each caption's image."""
    held = [set() for _ in range(num_images)]
    for caption, owner in zip(captions, owners, strict=True):
        held[owner] |= set(stems(caption))
    return held


LONGEST = 4  # words of a phrase
_LEADING = {"a", "an", "the"}


def phrases(captions, rng):
    """A phrase of each caption: up to `LONGEST` words, cut to an article and content words."""
    counts = {}
    for caption in captions:
        words = words_of(caption)
        if not words:
            continue
        count = int(rng.integers(1, LONGEST + 1))
        start = int(rng.integers(0, max(1, len(words) - count + 1)))
        chosen = list(words[start : start + count])
        while chosen and chosen[-1] in FUNCTION_WORDS:
            chosen.pop()
        while chosen and chosen[0] in FUNCTION_WORDS - _LEADING:
            chosen.pop(0)
        if not _LEADING.issuperset(chosen):
            counts.setdefault(" ".join(chosen))
    return list(counts)


def made_up(ids, word_ids: WordIds, rng):
    """Token ids `(n, length)` of texts with each word exchanged for any other of the vocabulary."""
    is_word = (ids > UNKNOWN_ID) & ~np.isin(ids, word_ids.special)
    drawn = rng.integers(word_ids.first, word_ids.end, ids.shape)
    return np.where(is_word, drawn, ids).astype(ids.dtype)
