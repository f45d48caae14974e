"""Size augmentation of captions: words are masked, replaced or deleted."""

from dataclasses import dataclass

import tensorflow as tf

from zoo.data.augmentation import Augmentation
from zoo.data.text.captions import drop_words

# Of the words that are lost: how many are deleted, replaced, masked (BERT's and VSE∞'s shares).
_SHARES = (("delete", 0.4), ("random", 0.1), ("mask", 0.5))


@dataclass(frozen=True)
class SizeAugmentation(Augmentation):
    """`Augmentation` whose lost words are 50 % masked, 10 % replaced by others and 40 % deleted.

    `word_dropping` is the probability that a word is lost in one of these ways.

    Reference: VSE∞ (Chen et al., CVPR 2021), section 3.3; PCME++ (Chun, ICLR 2024), table B.1.
    """

    def on_captions(self, ids, seed, words=None, shard=(0, 1)):
        left = 1.0
        for purpose, (mode, share) in enumerate(_SHARES):
            # Rates of what the ways before have left over, each with draws of its own.
            lost = self.word_dropping * share
            key = tf.random.fold_in(seed, purpose, alg="philox")
            ids = drop_words(ids, lost / left, key, mode, words, shard)
            left -= lost
        return ids
