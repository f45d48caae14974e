"""Captioning: the regions of an image must be able to tell its captions."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, Tensor
from zoo.layers.masking import masked_mean, masked_softmax
from zoo.losses.base import Auxiliary, mean_over

PADDING = 0  # as the first input it starts a caption, as a target after the last word it ends it


@keras.saving.register_keras_serializable(package="halo")
class Captioning(Auxiliary):
    """Cross-entropy of the captions under a decoder that attends to their images' regions.

    ```python
    term = zoo.losses.Captioning(vocabulary_size=9, region_dim=8, word_dim=4, hidden_dim=4)
    points = {"mean": np.ones((1, 4))}
    images = {**points, "regions": np.ones((1, 5, 8), "float32")}
    term(images, points, ids=np.array([[3, 4, 0]]), matches=np.ones((1, 1), "float32"))
    ```

    A GRU reads the words so far (teacher forcing), its states attend to the regions, and both
    together predict the next word, and after the last word the end.

    Args:
        vocabulary_size: number of token ids, of which 0 is padding.
        region_dim, word_dim, hidden_dim: channels of the regions, of the decoder's own word
            vectors, and of its states.
        weight, name: of `Auxiliary`; VSRN's weight is 1.
    Call arguments: images, an embedding with `"regions"` `(N, num_regions, region_dim)`, of which
        all-zero ones are padding (else a ValueError); captions, not read; ids `(M, length)`;
        matches `(N, M)`. The image of a caption of several images is the one that matches most, the
        first of equals; a caption of none is left out.
    Output: a float32 scalar, in nats: the mean over captions of the sum over their words.
    Reference: VSRN (Li et al., ICCV 2019), section 3.4; attention after the state: Luong et al.,
        EMNLP 2015.
    Released code differs: a second GRU first encodes the regions, and attention feeds the state.
    """

    reads = ("ids", "matches")

    def __init__(
        self,
        vocabulary_size: int,
        region_dim: int,
        word_dim: int = 300,
        hidden_dim: int = 512,
        weight: float = 1.0,
        name: str = "captioning",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        self.vocabulary_size = vocabulary_size
        self.region_dim = region_dim
        self.word_dim = word_dim
        self.hidden_dim = hidden_dim
        self.words = keras.layers.Embedding(vocabulary_size, word_dim, name="words")
        self.start = keras.layers.Dense(hidden_dim, activation="tanh", name="start")
        self.reader = keras.layers.GRU(hidden_dim, return_sequences=True, name="reader")
        self.query = keras.layers.Dense(region_dim, use_bias=False, name="query")
        self.join = keras.layers.Dense(hidden_dim, activation="tanh", name="join")
        self.predict = keras.layers.Dense(vocabulary_size, name="predict")
        # All shapes are known, so that the term can be restored before it has seen a batch.
        self.words.build((None, None))
        self.start.build((None, region_dim))
        self.reader.build((None, None, word_dim))
        self.query.build((None, None, hidden_dim))
        self.join.build((None, None, hidden_dim + region_dim))
        self.predict.build((None, None, hidden_dim))

    def call(self, images: Embedding, captions: Embedding, ids: Tensor, matches: Tensor) -> Tensor:
        if "regions" not in images:
            raise ValueError(
                "`images` must be an embedding with 'regions', see `zoo.models.with_captioning`; "
                f"received the keys {sorted(images)}"
            )
        of_caption = ops.argmax(matches, axis=0)
        regions = ops.take(ops.cast(images["regions"], "float32"), of_caption, axis=0)
        has_image = ops.cast(ops.greater(ops.max(matches, axis=0), 0), "float32")
        return self._crossentropy(regions, ids, has_image)

    def next_words(self, regions: Tensor, before: Tensor) -> Tensor:
        """The decoder's logits of the next word at every place, `(M, length, words)`, of regions
        `(M, num_regions, region_dim)` and the words before, `(M, length)`, padding first."""
        present = ops.any(ops.not_equal(regions, 0), axis=-1)
        start = self.start(masked_mean(regions, present))
        states = self.reader(self.words(before), initial_state=start)
        scores = ops.einsum("mtd,mkd->mtk", self.query(states), regions)
        weights = masked_softmax(scores, ops.expand_dims(present, 1))
        context = ops.einsum("mtk,mkd->mtd", weights, regions)
        return self.predict(self.join(ops.concatenate([states, context], axis=-1)))

    def _crossentropy(self, regions, ids, has_image):
        """The mean over captions with an image of Σ −log p(word | words before, regions); `ids` is
        (captions, words)."""
        first = ops.full_like(ids[:, :1], PADDING)
        before = ops.concatenate([first, ids[:, :-1]], axis=1)
        # Every word is predicted, and the first padding, which is the end.
        counts = ops.cast(ops.not_equal(before, PADDING), "float32")
        counts = ops.concatenate([ops.ones_like(counts[:, :1]), counts[:, 1:]], axis=1)
        logits = self.next_words(regions, before)
        losses = keras.losses.sparse_categorical_crossentropy(ids, logits, from_logits=True)
        return mean_over(ops.sum(losses * counts, axis=1), has_image)
