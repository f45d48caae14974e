"""A question in the words that a model is asked: without a search box' preamble, without typos."""

from collections.abc import Sequence

from halo_search.confidence.bank import Bank
from halo_search.confidence.senses import NO_WORDS, Senses
from halo_search.confidence.spelling import LEAST_SEEN, spelling_of
from halo_search.confidence.words import named_words, packaged_bank, stem
from halo_search.embeddings.arrays import centres
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.preambles import as_asked


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
        word is mistyped."""
        known = None if self._known is None else frozenset(self._known)
        return spelling_of(known).meant(as_asked(text), self.is_word)

    def is_word(self, word: str) -> bool:
        """Whether the model knows a word in one piece, or captions hold it."""
        if word in self._vocabulary or f"{word}</w>" in self._vocabulary:
            return True
        if self._known is not None or self._bank is None:  # every known word is listed
            return False
        return len(self._bank.holding(stem(word))) >= LEAST_SEEN

    def unheard(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text that no caption has and that the model spells out of pieces."""
        captioned = packaged_bank().words
        return [
            [word for word in named_words(text) if word not in captioned and not self.is_word(word)]
            for text in texts
        ]

    def senses(self, texts: Sequence[str]) -> list[Senses]:
        """What captions may call the words of each text, by the lexicon of the bank."""
        lexicon = NO_WORDS if self._bank is None else self._bank.lexicon
        return lexicon.senses_of(texts, self._embed)

    def _embed(self, words):
        """The means of words, `(n, dim)`."""
        return centres(self._model.tower("captions").of_texts(words))
