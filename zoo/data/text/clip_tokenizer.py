"""CLIP's byte-pair tokenizer from its merges file, the same in eager and in graph mode."""

import gzip
import os
import zlib
from collections.abc import Sequence
from typing import Any

import keras

from zoo.data.text.captions import WordIds
from zoo.embeddings import Tensor
from zoo.encoders.subwords import SubwordTokenizer
from zoo.errors import InputError, require
from zoo.files.text_files import lines_of, read_lines

START, END = "<|startoftext|>", "<|endoftext|>"
_MOST_CHARACTERS = 64 * 2**20  # of the unpacked file, which has 3 million
_MERGES = 49152 - 256 - 2  # CLIP uses so many of the file's merges


@keras.saving.register_keras_serializable(package="halo")
class ClipTokenizer(SubwordTokenizer):
    """Strings to CLIP's token ids: start, tokens, end, then zeros.

    ```python
    words = zoo.data.read_clip_tokenizer("bpe_simple_vocab_16e6.txt.gz")  # CLIP's file
    words(["a photo of a bird"])  # (1, 77)
    ```

    Saved with its vocabulary in whatever model holds it. As in CLIP, 0 is the padding, although it
    is also the id of a `!` that other characters follow in the same token (`!` alone is 256).

    Args:
        vocabulary: dict from token to id.
        merges: lines of `left right`, the most frequent first.
        max_words: the length of every row; longer captions are cut before the end token.

    Call arguments:
        inputs: strings `(batch,)`, as they come.

    Output: int32 `(batch, max_words)`.

    Relations: on the same text equal to KerasHub's `CLIPTokenizer` called eagerly. In a graph that
        one neither lowers letters nor takes digits apart nor splits at CLIP's own places, so here
        it gets the pieces one by one. It loses the two characters that it uses as marks, U+096C
        and U+0134.

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
        keras_hub = require("keras_hub", extra="text")

        self.vocabulary, self.merges = dict(vocabulary), list(merges)
        tokenizer = keras_hub.tokenizers.CLIPTokenizer(self.vocabulary, self.merges)
        ends = (self.vocabulary[START], self.vocabulary[END])
        super().__init__(tokenizer, ends, max_words, **kwargs)

    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return len(self.vocabulary)

    @property
    def word_ids(self) -> WordIds:
        """`WordIds`, for word dropping; CLIP has no mask, and `_` stands for it."""
        return WordIds(1, min(self.ends), self.vocabulary["_</w>"], self.ends)

    def tokens(self, text: Tensor) -> Tensor:
        return self.clip_tokens(text)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "vocabulary": dict(self.vocabulary),
            "merges": list(self.merges),
            "max_words": self.max_words,
        }


def read_clip_tokenizer(path: str | os.PathLike, max_words: int = 77) -> ClipTokenizer:
    """A `ClipTokenizer` from `bpe_simple_vocab_16e6.txt.gz` of openai/CLIP.

    Args:
        path: the file, gzipped or not.
        max_words: the length of a row of ids.

    Raises:
        InputError: if no path is given, it cannot be read, or it is not CLIP's merges.
    """
    if path is None:
        raise InputError("CLIP's tokenizer needs its file bpe_simple_vocab_16e6.txt.gz (--bpe)")
    path = str(path)
    if path.endswith(".gz"):
        try:
            with gzip.open(path, "rt", encoding="utf-8") as stored:
                lines = lines_of(stored.read(_MOST_CHARACTERS))
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
    else:
        lines = read_lines(path)
    merges = [line.strip() for line in lines[1 : _MERGES + 1]]
    for number, line in enumerate(merges, start=2):
        if len(line.split()) != 2:
            raise InputError(f"{path}:{number}: expected two symbols, found {line[:40]!r}")
    symbols = list(_byte_symbols())
    tokens = [*symbols, *(s + "</w>" for s in symbols), *("".join(m.split()) for m in merges)]
    vocabulary = {token: number for number, token in enumerate([*tokens, START, END])}
    return ClipTokenizer(vocabulary, merges, max_words)


def _byte_symbols():
    """The printable character that stands for each byte, in the order of CLIP's vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    yield from map(chr, printable)
    yield from (chr(256 + n) for n in range(256 - len(printable)))
