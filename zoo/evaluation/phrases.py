"""Phrases cut from captions, short as questions are; and made-up texts of random pieces."""

import numpy as np

from zoo.data.text.captions import UNKNOWN_ID, WordIds
from zoo.questions.words import FUNCTION_WORDS, words_of

LONGEST = 4  # words of a phrase
_ARTICLES = {"a", "an", "the"}


def phrases(captions, rng, longest=LONGEST):
    """A phrase of each caption: up to four words in a row, cut to an article and content words.

    ```python
    zoo.evaluation.phrases.phrases(["A black dog runs on the beach."], np.random.default_rng(0))
    ```

    Args:
        captions: strings.
        rng: a `numpy.random.Generator`, which draws the place and the length.
        longest: words of a phrase at most.

    Returns:
        A list of distinct strings in lower case, no more than the captions.
    """
    found = {}
    for caption in captions:
        words = words_of(caption)
        if not words:
            continue
        count = int(rng.integers(1, longest + 1))
        start = int(rng.integers(0, max(1, len(words) - count + 1)))
        chosen = words[start : start + count]
        while chosen and chosen[-1] in FUNCTION_WORDS:
            chosen.pop()
        while chosen and chosen[0] in FUNCTION_WORDS - _ARTICLES:
            chosen.pop(0)
        if not _ARTICLES.issuperset(chosen):
            found.setdefault(" ".join(chosen))
    return list(found)


def made_up(ids, word_ids: WordIds, rng):
    """Token ids with every word exchanged for any other of the vocabulary.

    Args:
        ids: `(n, length)`, of real texts.
        word_ids: of the tokenizer, see `zoo.data.captions.WordIds`; its end has to be known.
        rng: a `numpy.random.Generator`.

    Returns:
        An array like `ids`; padding, the unknown word and special ids stay.
    """
    is_word = (ids > UNKNOWN_ID) & ~np.isin(ids, word_ids.special)
    drawn = rng.integers(word_ids.first, word_ids.end, ids.shape)
    return np.where(is_word, drawn, ids).astype(ids.dtype)
