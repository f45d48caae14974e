"""Typos: which known words somebody may have meant."""

import functools
import re
from collections.abc import Callable

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from halo_search.confidence.words import FUNCTION_WORDS, packaged_bank, stem, words_of

LEAST_LETTERS, MOST_LETTERS = 3, 24  # of a word that may be mistyped
TWO_EDITS = 7  # letters from which two edits may be a typo
LONGEST = 500  # letters of a question that is corrected; a longer one is asked as it is
MOST_WORDS = 4  # words of a question that are corrected
LEAST_SEEN = 5  # captioned photos with a word that somebody may have meant
MOST_CANDIDATES = 4  # texts that a question may have meant
COMMON = 10  # captioned photos with a word one edit away, beside which two edits are no typo
# How much more common than a word itself what it may mean is, where captions hold it: they are
# mistyped too.
MUCH_MORE = 10
# Log of how much rarer typos of two edits are than of one, and those that change the first letter
# than others: Yannakoudakis and Fawthrop (1983) counted 7 % of the first letter.
SECOND_EDIT, FIRST_LETTER = 3.0, 2.0


class Spelling:
    """Known words, and how many captioned photos hold each.

    ```python
    spelling = Spelling({"dog": 900, "dig": 6, "cat": 700})
    spelling.meant("dgo with a ball")  # {"dog with a ball": 6.8, "dig with a ball": 1.8}
    ```

    The distance is optimal string alignment: an insertion, a deletion, a substitution and an
    exchange of two neighbours are one edit each.

    Args:
        counts: by word, the number of captioned photos that hold it.

    Reference: Damerau, "A technique for computer detection and correction of spelling errors",
        1964.
    """

    def __init__(self, counts: dict[str, int]):
        kept = [
            (word, count)
            for word, count in counts.items()
            if count >= LEAST_SEEN
            and len(word) >= LEAST_LETTERS
            and word.isalpha()
            and word not in FUNCTION_WORDS
        ]
        self.counts = counts
        self.words = [word for word, _ in kept]
        self.commonness = np.log([count for _, count in kept])

    def candidates(self, word: str) -> dict[str, float]:
        """Known words that a mistyped one may stand for, one for each stem, likeliest first, and
        their log likelihoods, up to a constant."""
        if not LEAST_LETTERS <= len(word) <= MOST_LETTERS or not word.isalpha():
            return {}
        count = self.counts.get(word, 0)
        # What captions hold is seldom a typo, and then of one edit: "platter" is no "player".
        most = 2 if len(word) >= TWO_EDITS and not count else 1
        matches = process.extract(
            word, self.words, scorer=OSA.distance, score_cutoff=most, limit=None
        )
        least = np.log(MUCH_MORE * count + 1e-9)
        matches = [
            (known, edits, place)
            for known, edits, place in matches
            if edits and self.commonness[place] >= least and _is_likely(word, known)
        ]
        near = [self.commonness[place] for _, edits, place in matches if edits == 1]
        most = 1 if max(near, default=0.0) >= np.log(COMMON) else 2
        likelihood = {
            known: self.commonness[place]
            - SECOND_EDIT * (edits - 1)
            - FIRST_LETTER * (sorted(known[:2]) != sorted(word[:2]) and known[0] != word[0])
            for known, edits, place in matches
            if edits <= most
        }
        ranked = sorted(likelihood, key=lambda known: (-likelihood[known], known))
        of_stems = {}
        for known in ranked:
            of_stems.setdefault(stem(known), known)
        return {known: likelihood[known] for known in list(of_stems.values())[:MOST_CANDIDATES]}

    def meant(self, text: str, is_known: Callable[[str], bool] | None = None) -> dict[str, float]:
        """The texts that a question may have meant, at most four, and their log likelihoods, up to
        a constant; the text alone where every word is known or nothing is near.

        Args:
            text: the question.
            is_known: whether a word is no typo; None: a word that captions hold is none.
        """
        if len(text) > LONGEST:
            return {text: 0.0}
        corrections = {}
        for word in dict.fromkeys(words_of(text)):
            if len(corrections) == MOST_WORDS:
                break
            if word in FUNCTION_WORDS or (is_known or self.counts.__contains__)(word):
                continue
            if candidates := self.candidates(word):
                corrections[word] = candidates
        best = {word: next(iter(candidates)) for word, candidates in corrections.items()}
        likeliest = sum(candidates[best[word]] for word, candidates in corrections.items())
        texts = {replaced(text, best): float(likeliest)}
        for word, candidates in corrections.items():  # the others of one word at a time
            for other, likelihood in candidates.items():
                away = likelihood - candidates[best[word]]
                texts.setdefault(replaced(text, best | {word: other}), float(likeliest + away))
        ranked = sorted(texts, key=lambda one: -texts[one])  # stable: ties in order
        return {one: texts[one] for one in ranked[:MOST_CANDIDATES]}


def _is_likely(word, known):
    """Whether a known word may be meant: of three letters none is another, or every word would have
    several meanings."""
    is_substituted = len(word) == len(known) and sorted(word) != sorted(known)
    return len(word) > LEAST_LETTERS or not is_substituted


def replaced(text: str, corrections: dict[str, str]) -> str:
    """A text with some of its words replaced."""
    for word, correction in corrections.items():
        text = re.sub(rf"(?i)\b{re.escape(word)}\b", correction, text)
    return text


@functools.lru_cache(4)
def spelling_of(known: frozenset[str] | None) -> Spelling:
    """The `Spelling` of the packaged captions; of a model that knows `known` words alone, of these,
    the ones that no caption holds as rare as any that is corrected to."""
    counts = packaged_bank().words
    if known is not None:
        counts = {word: max(LEAST_SEEN, counts.get(word, 0)) for word in sorted(known)}
    return Spelling(counts)
