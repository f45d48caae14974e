"""What the tokenizers of pieces share: rows of a fixed length between two special tokens."""

import base64
import gzip
import os
import zlib
from typing import Any

import keras
import tensorflow as tf

from halo_search.errors import InputError, require
from halo_search.files.text_files import lines_of, read_lines
from halo_search.towers.piece_tokenizer import CANONICAL, CLEANINGS, CLIP, LOWER, NOTHING, WEB

# What Python takes for white space, of which RE2's `\s` is a part; within brackets.
SPACE = r"\s\v\x1c-\x1f\x{85}\pZ"
# CLIP's own pattern; of the alternatives that fit at a place the first is taken.
_CLIP = (
    r"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|\pL+|\pN|"
    rf"[^{SPACE}\pL\pN]+)"
)
START, END = "<|startoftext|>", "<|endoftext|>"
_MOST_CHARACTERS = 64 * 2**20  # of the unpacked file of merges, which has 3 million
_MERGES = 49152 - 256 - 2  # CLIP uses so many of the file's merges
_PUNCTUATION = r"[!-/:-@\[-`{-~]"  # Python's `string.punctuation`


class SubwordTokenizer(keras.layers.Layer):
    """Strings `(batch,)` to int32 rows `(batch, max_words)` of start, tokens, end and padding."""

    def __init__(self, tokenizer, ends, max_words, padding=0, **kwargs):
        if max_words < 3:
            raise ValueError(f"`max_words` must be at least 3; received {max_words}")
        super().__init__(**{**kwargs, "trainable": False})
        self.tokenizer, self.ends, self.max_words = tokenizer, tuple(ends), max_words
        self.padding = padding
        self.supports_jit = False
        self.built = True
        # Lists of strings are taken too, as by `TextVectorization`.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self._trace()

    def _trace(self):
        """Makes the graph by which texts are tokenized outside of graphs too."""
        # Called eagerly KerasHub takes another implementation, with other ids here and there.
        self._in_graph = tf.function(
            self._rows, input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False
        )

    def tokens(self, text):
        """Ragged ids `(batch, None)` of strings `(batch,)`, without the ends."""
        raise NotImplementedError

    def normalise(self, text):
        """The text in Unicode's composed form, as both tokenizers' eager modes have it."""
        # Here, since it takes 120 MB that few models need.
        tf_text = require("tensorflow_text", extra="models")
        return tf_text.normalize_utf8(text, "NFC")

    def clip_tokens(self, text):
        """As `tokens`, of KerasHub's tokenizer of CLIP. In a graph it neither lowers letters nor
        takes digits apart nor splits at CLIP's own places, so it gets the pieces one by one."""
        text = tf.strings.lower(self.normalise(text), encoding="utf-8")
        text = tf.strings.regex_replace(text, _CLIP, r" \1 ")
        pieces = tf.strings.split(tf.strings.regex_replace(text, f"[{SPACE}]+", " "))
        return pieces.with_values(self.tokenizer(pieces.values)).merge_dims(1, 2)

    def call(self, inputs):
        text, rows = tf.convert_to_tensor(inputs, tf.string), self._in_graph
        if tf.config.functions_run_eagerly():  # where KerasHub's tokenizers give lists
            rows = rows.get_concrete_function()
        return tf.ensure_shape(rows(text), (text.shape[0], self.max_words))

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((inputs.shape[0], self.max_words), dtype="int32")

    def _rows(self, text):
        """int32 (texts, max_words): start token, pieces, end token, padding."""
        first, last = ([] if token is None else [token] for token in self.ends)
        room = self.max_words - len(first) - len(last)
        tokens = tf.cast(self.tokens(text), tf.int32)[:, :room]
        column = tf.ones((tf.shape(text)[0], 1), tf.int32)
        parts = [*(column * token for token in first), tokens, *(column * token for token in last)]
        rows = tf.concat(parts, axis=1)
        return rows.to_tensor(self.padding, shape=(None, self.max_words))


@keras.saving.register_keras_serializable(package="halo")
class HubTokenizer(SubwordTokenizer):
    """Strings to ids as a KerasHub preprocessor makes them, the same in eager and in graph mode.
    Saved with its vocabulary in whatever model holds it."""

    def __init__(
        self,
        tokenizer: keras.layers.Layer,
        max_words: int,
        ends: tuple[int | None, int | None],
        padding: int = 0,
        cleaning: str = NOTHING,
        **kwargs: Any,
    ):
        if cleaning not in CLEANINGS:
            raise ValueError(f"`cleaning` must be one of {CLEANINGS}; received {cleaning!r}")
        super().__init__(tokenizer, ends, max_words, padding, **kwargs)
        self.cleaning = cleaning

    @classmethod
    def of(cls, preprocessor: keras.layers.Layer, most: int) -> "HubTokenizer":
        """That of a KerasHub preprocessor of CLIP, SigLIP or MetaCLIP 2, with at most as many ids
        as the network has positions for."""
        tokenizer = preprocessor.tokenizer
        if hasattr(tokenizer, "merges"):
            cleaning = CLIP
        elif getattr(preprocessor, "canonicalize_text", False):
            cleaning = CANONICAL
        else:
            cleaning = LOWER if getattr(preprocessor, "to_lower", False) else NOTHING
        ends = (
            tokenizer.start_token_id if preprocessor.add_start_token else None,
            tokenizer.end_token_id if preprocessor.add_end_token else None,
        )
        return cls(
            tokenizer,
            min(preprocessor.sequence_length, most),
            tuple(None if token is None else int(token) for token in ends),
            int(tokenizer.pad_token_id),
            cleaning,
            name="tokenizer",
        )

    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return self.tokenizer.vocabulary_size()

    @property
    def vocabulary(self) -> dict[str, int]:
        """CLIP's words and pieces; none of SentencePiece, as `PieceTokenizer`."""
        return dict(getattr(self.tokenizer, "vocabulary", {}))

    def call(self, inputs):
        try:
            return super().call(inputs)
        except tf.errors.NotFoundError:
            # SentencePiece's resource is gone where TensorFlow's caches were cleared, as
            # `keras.utils.set_random_seed` does.
            self.tokenizer.set_proto(self.tokenizer.proto)
            self._trace()
            return super().call(inputs)

    def tokens(self, text):
        """Ids of the word pieces of texts `(n,)`, ragged `(n, pieces)`, cleaned as the checkpoint's
        own code cleans them."""
        if self.cleaning == CLIP:
            return self.clip_tokens(text)
        if self.cleaning == LOWER:
            text = tf.strings.lower(text)
        elif self.cleaning == CANONICAL:
            keras_hub = require("keras_hub", extra="models")
            # It reads nothing of the preprocessor, and its pattern stands nowhere else.
            text = keras_hub.models.SigLIPPreprocessor.canonicalize_inputs(None, text)
        elif self.cleaning == WEB:
            text = tf.strings.regex_replace(text, "_", " ")
            text = tf.strings.regex_replace(text, _PUNCTUATION, "")
            text = tf.strings.lower(text, encoding="utf-8")
            text = tf.strings.strip(tf.strings.regex_replace(text, f"[{SPACE}]+", " "))
        return self.tokenizer(text)

    def get_config(self) -> dict[str, Any]:
        tokenizer = self.tokenizer
        if hasattr(tokenizer, "merges"):
            words = {"vocabulary": dict(tokenizer.vocabulary), "merges": list(tokenizer.merges)}
        else:
            words = {"proto": base64.b64encode(tokenizer.proto).decode("ascii")}
        return {
            "name": self.name,
            "tokenizer": keras.saving.serialize_keras_object(tokenizer),
            "words": words,
            "max_words": self.max_words,
            "ends": list(self.ends),
            "padding": self.padding,
            "cleaning": self.cleaning,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "HubTokenizer":
        config = dict(config)
        words = config.pop("words")
        require("keras_hub", extra="models")  # whose classes the config names
        tokenizer = keras.saving.deserialize_keras_object(config.pop("tokenizer"))
        if "proto" in words:
            tokenizer.set_proto(base64.b64decode(words["proto"]))
        else:
            tokenizer.set_vocabulary_and_merges(words["vocabulary"], words["merges"])
        return cls(tokenizer, **config)


def read_byte_pairs(path: str | os.PathLike) -> tuple[dict[str, int], list[str]]:
    """CLIP's vocabulary and merges of `bpe_simple_vocab_16e6.txt.gz`. Raises InputError as
    `zoo.data.read_clip_tokenizer`."""
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
    return vocabulary, merges


def _byte_symbols():
    """The printable character that stands for each byte, in the order of CLIP's vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    yield from map(chr, printable)
    yield from (chr(256 + n) for n in range(256 - len(printable)))
