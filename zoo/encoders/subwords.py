"""What the tokenizers of pieces share: rows of a fixed length between two special tokens."""

import keras
import tensorflow as tf

from zoo.errors import require

# What Python takes for white space, of which RE2's `\s` is a part; within brackets.
SPACE = r"\s\v\x1c-\x1f\x{85}\pZ"
# CLIP's own pattern; of the alternatives that fit at a place the first is taken.
_CLIP = (
    r"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|\pL+|\pN|"
    rf"[^{SPACE}\pL\pN]+)"
)


class SubwordTokenizer(keras.layers.Layer):
    """Strings to rows of start, tokens, end and padding.

    Args:
        tokenizer: KerasHub's, from strings `(batch,)` to ragged ids.
        ends: the ids of the start and of the end; None where there is none.
        max_words: the length of every row; longer captions are cut before the end.
        padding: the id that fills a row.

    Call arguments:
        inputs: strings `(batch,)`, as they come.

    Output: int32 `(batch, max_words)`.
    """

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
        tf_text = require("tensorflow_text", extra="text")
        return tf_text.normalize_utf8(text, "NFC")

    def clip_tokens(self, text):
        """As `tokens`, of KerasHub's tokenizer of CLIP.

        In a graph it neither lowers letters nor takes digits apart nor splits at CLIP's own
        places, so it gets the pieces one by one.
        """
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
        first, last = ([] if one is None else [one] for one in self.ends)
        room = self.max_words - len(first) - len(last)
        tokens = tf.cast(self.tokens(text), tf.int32)[:, :room]
        column = tf.ones((tf.shape(text)[0], 1), tf.int32)
        parts = [*(column * one for one in first), tokens, *(column * one for one in last)]
        rows = tf.concat(parts, axis=1)
        return rows.to_tensor(self.padding, shape=(None, self.max_words))
