"""Which augmentations a training pipeline applies."""

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from zoo.data.pipeline.random_crops import RandomCrop
from zoo.data.text import captions
from zoo.data.text.captions import WordIds, drop_words
from zoo.embeddings import Tensor
from zoo.files import images

# Of the words that are lost: how many are deleted, replaced, masked (BERT's and VSE∞'s shares).
_SHARES = (("delete", 0.4), ("random", 0.1), ("mask", 0.5))


@dataclass(frozen=True)
class Augmentation:
    """What training does to pictures and words; the default is nothing.

    ```python
    zoo.data.Augmentation(flip=True, word_dropping=0.1)
    ```

    Attributes:
        crop: the random part of each original picture that is shown, a `RandomCrop`, or None for
            what the source shows without. It takes the place of the source's own `mode`.
        flip: mirror half of the pictures.
        cutout: probability that a picture (or feature map) loses a rectangle.
        word_dropping: probability that a word is lost.
        word_dropping_mode: how: `"mask"`, `"random"` or `"delete"`.
    """

    crop: RandomCrop | None = None
    flip: bool = False
    cutout: float = 0.0
    word_dropping: float = 0.0
    word_dropping_mode: str = "mask"

    def on_images(
        self, batch: Tensor, seed: Tensor, fill: Sequence[float], shard: tuple[int, int] = (0, 1)
    ) -> Tensor:
        """The pictures or feature maps, mirrored and erased. `fill` is what Cutout leaves."""
        if self.flip:
            batch = images.random_flip(batch, seed, shard)
        if self.cutout:
            batch = images.cutout(batch, self.cutout, seed, fill=fill, shard=shard)
        return batch

    def on_captions(
        self,
        ids: Tensor,
        seed: Tensor,
        words: WordIds | None = None,
        shard: tuple[int, int] = (0, 1),
    ) -> Tensor:
        """The ids with some words lost; `words` are the tokenizer's `word_ids`."""
        if not self.word_dropping:
            return ids
        return captions.drop_words(
            ids, self.word_dropping, seed, self.word_dropping_mode, words, shard
        )


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
