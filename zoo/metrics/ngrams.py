"""N-gram counts of captions as sparse rows over a vocabulary that grows."""

import numpy as np
from scipy import sparse


class NgramVocabulary:
    """Numbers n-grams in the order in which they are first seen.

    Args:
        max_order: counts n-grams of 1 to `max_order` words.
        tokenizer: a function from a caption to its words; None splits on white space.
    """

    def __init__(self, max_order, tokenizer=None):
        self.max_order = max_order
        self._tokenizer = tokenizer or str.split
        self._ids = {}
        self._orders = []

    def __len__(self):
        return len(self._orders)

    @property
    def orders(self):
        """Words in each n-gram, `(len(self),)`."""
        return np.array(self._orders, int)

    def count(self, captions):
        """Counts the n-grams of captions; unknown ones enter the vocabulary.

        Args:
            captions: strings.

        Returns:
            `(counts, num_words)`: counts float32 CSR `(len(captions), len(self))`, num_words
            `(len(captions),)`.
        """
        columns, ends, num_words = [], [0], []
        for caption in captions:
            words = self._tokenizer(caption)
            num_words.append(len(words))
            for order in range(1, self.max_order + 1):
                for start in range(len(words) - order + 1):
                    columns.append(self._id(tuple(words[start : start + order])))
            ends.append(len(columns))
        counts = sparse.csr_array(
            (np.ones(len(columns), np.float32), np.array(columns, int), np.array(ends)),
            shape=(len(ends) - 1, len(self)),
        )
        counts.sum_duplicates()
        return counts, np.array(num_words, int)

    def _id(self, ngram):
        found = self._ids.get(ngram)
        if found is None:
            found = self._ids[ngram] = len(self._orders)
            self._orders.append(len(ngram))
        return found
