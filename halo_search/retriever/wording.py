"""A question in the words that a model is asked: without a search box' preamble, without typos, and
without a negation that one word says."""

from collections.abc import Sequence

from halo_search.confidence.bank import Bank
from halo_search.confidence.senses import NO_WORDS, Senses
from halo_search.confidence.spelling import LEAST_SEEN, spelling_of
from halo_search.confidence.words import FUNCTION_WORDS, packaged_bank, stem, words_of
from halo_search.embeddings.arrays import centres
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.negations import affirmed
from halo_search.retriever.preambles import as_asked

LEAST_WORDS = 4  # of a text whose words are counted to tell its language
_ENDS = "{}", "{}</w>", "▁{}"  # how vocabularies write a word in one piece


class Wording:
    """The words that a model and captions know.

    Args:
        model: whose tokenizer reads questions.
        bank: the captioned photos of the probes, or None.
    """

    def __init__(self, model: GalleryModel, bank: Bank | None):
        self._known = model.known_words  # None where the tokenizer spells every word
        vocabulary = model.vocabulary if self._known is None else self._known
        self._vocabulary = frozenset(vocabulary or ())
        self._model, self._bank = model, bank

    def meanings(self, text: str) -> dict[str, float]:
        """What a text as typed may mean, as the model is asked it, likeliest first: one where no
        word is mistyped, or where the text is of another language."""
        known = None if self._known is None else frozenset(self._known)
        text = as_asked(text)
        texts = {text: 0.0}
        if not self.is_foreign(text):
            texts = spelling_of(known).meant(text, self.is_word)
        return {affirmed(one, self._lexicon, self._embed): odds for one, odds in texts.items()}

    def is_word(self, word: str) -> bool:
        """Whether the model knows a word in one piece, or captions hold it."""
        if self._is_one_piece(word):
            return True
        if self._known is not None or self._bank is None:  # every known word is listed
            return False
        return len(self._bank.holding(stem(word))) >= LEAST_SEEN

    def is_foreign(self, text: str) -> bool:
        """Whether a text is in another language than the captions: these hold less than half of its
        words. Of two or three words they hold none, and one is known to the model: typos are
        not."""
        words = words_of(text)
        others = [word for word in words if not self._is_of_captions(word)]
        if self._known is not None or len(words) < 2:
            return False
        if len(words) >= LEAST_WORDS:
            return len(others) > len(words) / 2
        return len(others) == len(words) and any(map(self._is_one_piece, others))

    def unheard(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text that no caption has and that the model spells out of pieces, as
        often as they stand there; of a text of another language all that no caption has."""
        return [self._unheard(text) for text in texts]

    def _unheard(self, text):
        if not self._vocabulary:  # the model reads all languages
            return []
        if self.is_foreign(text):
            return [word for word in words_of(text) if not self._is_of_captions(word)]
        captioned = packaged_bank().words
        return [
            word
            for word in words_of(text)
            if word not in FUNCTION_WORDS and word not in captioned and not self.is_word(word)
        ]

    def _is_one_piece(self, word):
        """Whether the vocabulary has a word."""
        return any(end.format(word) in self._vocabulary for end in _ENDS)

    def _is_of_captions(self, word):
        """Whether captions hold a word, more often than a slip."""
        if word in FUNCTION_WORDS or packaged_bank().words.get(word, 0) >= LEAST_SEEN:
            return True
        return self._bank is not None and len(self._bank.holding(stem(word))) >= LEAST_SEEN

    def senses(self, texts: Sequence[str]) -> list[Senses]:
        """What captions may call the words of each text, by the lexicon of the bank."""
        return self._lexicon.senses_of(texts, self._embed)

    @property
    def _lexicon(self):
        return NO_WORDS if self._bank is None else self._bank.lexicon

    def _embed(self, words):
        """The means of words, `(n, dim)`."""
        return centres(self._model.tower("captions").of_texts(words))
