"""The words of a question: which name something, their stems, and how common they are."""

import functools
import unicodedata
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

# English words that name nothing: every vocabulary of captions has them.
_LISTED = (
    "a an and are as at be by for from has have in is it its of on or that the there this to was "
    "were which while with"
)
FUNCTION_WORDS = frozenset(_LISTED.split())

FILE = "caption_bank.npz"

MOST_WORDS = 3  # stems of a short question
ARTICLES = ("a", "an", "the")
_IRREGULAR = (
    "men:man women:woman children:child people:person feet:foot teeth:tooth geese:goose "
    "mice:mouse leaves:leaf knives:knife wolves:wolf shelves:shelf loaves:loaf buses:bus "
    "wives:wife calves:calf halves:half"
)
IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR.split())


@functools.lru_cache(256)  # a question's are looked at by its preambles, its prior and the judge
def words_of(text: str) -> tuple[str, ...]:
    """The words of one text in lower case, without marks: those that `normalise` leaves, which is a
    TensorFlow graph and takes longer."""
    text = text.lower().replace("'", "").replace("’", "")
    kept = (c if c.isalnum() or unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return tuple("".join(kept).split())


def unknown_words(reader: Any, texts: Sequence[str]) -> tuple[np.ndarray, list[list[str]] | None]:
    """How many words of texts name something, and lists of those that `reader`, a tokenizer or what
    is stored of one, does not know; None for these where it spells every word."""
    found = [[word for word in words_of(text) if word not in FUNCTION_WORDS] for text in texts]
    words, known = np.array([len(one) for one in found]), getattr(reader, "known_words", None)
    if known is None:
        return words, None
    return words, [[word for word in one if word not in known] for one in found]


def stem(word: str) -> str:
    """A word without its plural's ending, by Harman's S stemmer (JASIS 1991)."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("us", "ss", "is")):
        return word[:-1]
    return word


def named_words(text: str) -> list[str]:
    """The words of a text that name something, as they are spelled, each once, in order."""
    return list(dict.fromkeys(word for word in words_of(text) if word not in FUNCTION_WORDS))


def stems(text: str) -> list[str]:
    """The stems of the words of a text that name something, each once, in order."""
    return list(dict.fromkeys(stem(word) for word in named_words(text)))


def is_short(text: str) -> bool:
    """Whether a question is of up to three words that name something, and no full sentence."""
    return 1 <= len(stems(text)) <= MOST_WORDS and not text.rstrip().endswith(".")


class CaptionBank:
    """Which captioned photos hold which stems, of sorted stems: a prior for short questions."""

    # The packaged bank is of MS COCO's val2017 captions (CC BY 4.0, see CREDITS beside the packaged
    # photos); no caption is in it. The photos of a stem are those from `starts` on, rising. `words`
    # are the captions' words as they are spelled, and how many photos hold each.

    def __init__(self, stems, starts, photos, size, words):
        self.stems, self.starts, self.photos = stems, np.asarray(starts), np.asarray(photos)
        self.size = int(size)
        self.words = words
        self._row = {stem: row for row, stem in enumerate(stems)}

    @classmethod
    def of(cls, captions, photo_of, least=2):
        """The bank of captions and the number of each one's photo, from 0; stems of fewer than
        `least` photos are left out, such as misspelt words."""
        found, spelled = {}, {}
        for caption, photo in zip(captions, photo_of, strict=True):
            for stem in stems(caption):
                found.setdefault(stem, set()).add(int(photo))
            for word in words_of(caption):
                spelled.setdefault(word, set()).add(int(photo))
        words = {word: len(spelled[word]) for word in sorted(spelled)}
        words = {word: count for word, count in words.items() if count >= least}
        kept = sorted(stem for stem, photos in found.items() if len(photos) >= least)
        lists = [np.array(sorted(found[stem]), np.uint16) for stem in kept]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
        return cls(kept, starts, np.concatenate(lists), max(photo_of) + 1, words)

    def photos_with(self, stem):
        """The numbers of the photos whose captions hold a stem."""
        row = self._row.get(stem)
        if row is None:
            return np.empty(0, np.uint16)
        return self.photos[self.starts[row] : self.starts[row + 1]]

    def count(self, senses):
        """How many photos hold a stem of each of some sets; 0 of no set."""
        if not senses:
            return 0
        holds_all = np.ones(self.size, bool)
        for sense in senses:
            holds = np.zeros(self.size, bool)
            for one in sense:
                holds[self.photos_with(one)] = True
            holds_all &= holds
        return int(holds_all.sum())

    def save(self, path):
        """Writes one file of arrays."""
        np.savez_compressed(
            path,
            stems=np.frombuffer("\n".join(self.stems).encode(), np.uint8),
            words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
            counts=np.array(list(self.words.values()), np.uint16),
            starts=self.starts.astype(np.int32),
            photos=self.photos.astype(np.uint16),
            size=self.size,
        )

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            stems, words = (
                file[name].tobytes().decode().split("\n") for name in ("stems", "words")
            )
            counts = dict(zip(words, file["counts"].tolist(), strict=True))
            return cls(stems, file["starts"], file["photos"], file["size"], counts)


@functools.cache
def packaged_bank() -> CaptionBank:
    """The bank that comes with the package."""
    with resources.as_file(resources.files("halo_search.confidence") / FILE) as path:
        return CaptionBank.load(path)
