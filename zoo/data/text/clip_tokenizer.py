"""CLIP's byte-pair tokenizer from its merges file, the same in eager and in graph mode."""

import os
from collections.abc import Sequence
from typing import Any

import keras

from halo_search.errors import require
from zoo.data.text.captions import WordIds
from zoo.embeddings import Tensor
from zoo.encoders.subwords import END, START, SubwordTokenizer, read_byte_pairs


@keras.saving.register_keras_serializable(package="halo")
class ClipTokenizer(SubwordTokenizer):
    """Strings to CLIP's token ids: start, tokens, end, then zeros.

    ```python
    words = zoo.data.read_clip_tokenizer("bpe_simple_vocab_16e6.txt.gz")  # CLIP's file
    words(["a photo of a bird"])  # (1, 77)
    ```

    As in CLIP, 0 is the padding, although it is also the id of a `!` that other characters follow
    in the same token (`!` alone is 256).

    Args:
        vocabulary: dict from token to id.
        merges: lines of `left right`, the most frequent first.
        max_words: the length of every row; longer captions are cut before the end token.
    Call arguments: strings `(batch,)`, as they come.
    Output: int32 `(batch, max_words)`.
    Relations: equal to KerasHub's `CLIPTokenizer` called eagerly, which loses its own two marks,
        U+096C and U+0134.
    Reference: Radford et al., ICML 2021, section 2.4.
    """

    def __init__(
        self,
        vocabulary: dict[str, int],
        merges: Sequence[str],
        max_words: int = 77,
        **kwargs: Any,
    ):
        # Here, since it takes a second and 150 MB that few models need.
        keras_hub = require("keras_hub", extra="models")

        self.vocabulary, self.merges = dict(vocabulary), list(merges)
        tokenizer = keras_hub.tokenizers.CLIPTokenizer(self.vocabulary, self.merges)
        ends = (self.vocabulary[START], self.vocabulary[END])
        super().__init__(tokenizer, ends, max_words, **kwargs)

    def vocabulary_size(self) -> int:
        return len(self.vocabulary)

    @property
    def word_ids(self) -> WordIds:
        """The ids of word pieces: all but padding, start and end."""
        # CLIP has no mask, and `_` stands for it.
        return WordIds(1, min(self.ends), self.vocabulary["_</w>"], self.ends)

    def tokens(self, text: Tensor) -> Tensor:
        return self.clip_tokens(text)

    def get_config(self) -> dict[str, Any]:
        pieces = {"vocabulary": self.vocabulary, "merges": self.merges}
        return {"name": self.name, **pieces, "max_words": self.max_words}


def read_clip_tokenizer(path: str | os.PathLike, max_words: int = 77) -> ClipTokenizer:
    """A `ClipTokenizer` from `bpe_simple_vocab_16e6.txt.gz` of openai/CLIP, gzipped or not. Raises
    InputError if it cannot be read, or is not CLIP's merges."""
    return ClipTokenizer(*read_byte_pairs(path), max_words)
