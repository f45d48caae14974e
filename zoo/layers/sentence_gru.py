"""The recurrent network that reads a sentence."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer

MERGES = ("concat", "ave")


@keras.saving.register_keras_serializable(package="halo")
class SentenceGRU(Layer):
    """A GRU over words in one or both directions, with the state at the end of each direction.

    ```python
    zoo.layers.SentenceGRU(4)(np.ones((2, 5, 8), "float32"))  # vectors of five words
    ```

    Args:
        dim: dimension of the states (D).
        bidirectional: whether to read backwards too.
        merge: how the two directions make a state: `"concat"` of `dim / 2` each (PCME, DivE),
            `"ave"`: the mean of `dim` each (VSE∞). Without effect in one direction.
        at_last_word: whether the sentence is the states of both directions at the last word,
            where the backward one has read that word only: PCME's and PVSE's released weights
            expect it.
    Call arguments: words `(batch, length, word_dim)`; mask, bool `(batch, length)`, True for words,
        which come before the padding. A sentence without words is read as one word of padding.
    Output: `(states, sentence)`: the states `(batch, length, dim)`, zero at padding, and the
        sentence `(batch, dim)`: the forward state at the last word and the backward state at the
        first, so that both halves have read the whole sentence, unless `at_last_word`.
        Raises ValueError if `dim` is odd where two halves are concatenated.
    Reference: Cho et al., EMNLP 2014; the encoder of VSE++ (Faghri et al., BMVC 2018) and PCME
        (Chun et al., CVPR 2021).
    Released code differs: PCME and PVSE gather both directions at the last word.
    """

    def __init__(
        self,
        dim: int,
        bidirectional: bool = True,
        merge: str = "concat",
        at_last_word: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if merge not in MERGES:
            raise ValueError(f"`merge` must be one of {MERGES}; received {merge!r}")
        halves = bidirectional and merge == "concat"
        if dim < 1 or (halves and dim % 2):
            raise ValueError(f"`dim` must be positive, and even for two halves; received {dim}")
        self.dim = dim
        self.bidirectional = bidirectional
        self.merge = merge
        self.at_last_word = at_last_word
        policy = self.dtype_policy
        self.gru = keras.layers.GRU(
            dim // 2 if halves else dim,
            return_sequences=True,
            return_state=True,
            dtype=policy,
            name="gru",
        )
        if bidirectional:
            self.gru = keras.layers.Bidirectional(
                self.gru, merge_mode=merge, dtype=policy, name="both_directions"
            )

    def build(self, words_shape):
        self.gru.build(words_shape)

    def call(self, words: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        read = mask
        if mask is not None:
            # cuDNN rejects an empty sentence
            read = ops.logical_or(ops.cast(mask, "bool"), ops.arange(ops.shape(words)[1]) == 0)
        states, *ends = self.gru(words, mask=read)
        if self.at_last_word:
            count = ops.shape(words)[1] if read is None else ops.sum(ops.cast(read, "int32"), 1)
            last = ops.broadcast_to(ops.reshape(count - 1, (-1, 1, 1)), (ops.shape(words)[0], 1, 1))
            ends = [ops.squeeze(ops.take_along_axis(states, last, axis=1), 1)]
        if mask is not None:
            states = ops.where(ops.expand_dims(mask, -1), states, ops.zeros_like(states))
        if len(ends) == 1:
            return states, ends[0]
        if self.merge == "concat":
            return states, ops.concatenate(ends, axis=-1)
        return states, (ends[0] + ends[1]) / 2

    def compute_output_spec(self, words, mask=None):
        # Said, since to trace both directions takes most of the time in which a model is built.
        batch, length, _ = words.shape
        return (
            keras.KerasTensor((batch, length, self.dim), self.compute_dtype),
            keras.KerasTensor((batch, self.dim), self.compute_dtype),
        )

    def compute_mask(self, words, previous_mask):
        return None if previous_mask is None else (previous_mask, None)
