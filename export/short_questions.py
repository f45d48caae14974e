"""How common the words of a short question are, as a TensorFlow function of texts."""

import keras
import numpy as np
import tensorflow as tf

from zoo.confidence.words import FUNCTION_WORDS, IRREGULAR, MOST_WORDS
from zoo.data.text.captions import normalise

_STRIPPED = (  # longer than, ends with, does not end with, letters off, what is put there
    (4, "(?:sses|shes|ches|xes|zes)", "", 2, ""),
    (4, "ies", "(?:eies|aies)", 3, "y"),
)


class PriorFunction(tf.Module):
    """`zoo.confidence.fits.prior_of` of texts by a `CaptionBank`, with the tables that it needs.

    Args:
        bank: a `zoo.confidence.caption_bank.CaptionBank`.
    """

    def __init__(self, bank):
        super().__init__(name="short_questions")
        self._size = bank.size
        self._function_words = keras.layers.StringLookup(vocabulary=sorted(FUNCTION_WORDS))
        self._stems = keras.layers.StringLookup(vocabulary=list(bank.stems))
        names, singular = zip(*IRREGULAR.items(), strict=True)
        self._irregular = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(names), tf.constant(singular)), ""
        )
        holds = np.zeros((len(bank.stems) + 2, bank.size), bool)  # none has an unknown stem
        for row, stem in enumerate(bank.stems):
            holds[row + 1, bank.photos_with(stem)] = True
        holds[-1] = True  # in place of a stem that is not there
        self._holds = tf.constant(np.packbits(holds, axis=1))

    def __call__(self, texts):
        """π of texts `(Q,)`, float32; NaN of those that `is_short` says are not."""
        words = tf.strings.split(normalise(texts))
        words = tf.ragged.boolean_mask(
            words, words.with_values(self._function_words(words.values) == 0)
        )
        stems = words.with_values(self._stem(words.values))
        spec = tf.TensorSpec((), tf.float32)
        found = tf.map_fn(self._prior, stems, fn_output_signature=spec)
        is_sentence = tf.strings.regex_full_match(texts, r"(?s).*\.[\s\pZ]*")
        return tf.where(is_sentence, float("nan"), found)

    def _prior(self, stems):
        stems = tf.unique(stems).y
        count, most = tf.size(stems), MOST_WORDS
        rows = tf.cast(self._stems(stems[:most]), tf.int32)
        filled = tf.fill([most - tf.size(rows)], self._holds.shape[0] - 1)
        holds = tf.unstack(tf.gather(self._holds, tf.concat([rows, filled], 0)), num=most)
        both = holds[0]
        for one in holds[1:]:
            both = tf.bitwise.bitwise_and(both, one)
        photos = tf.reduce_sum(tf.cast(tf.raw_ops.PopulationCount(x=both), tf.int32))
        share = (tf.cast(photos, tf.float64) + 0.25) / (self._size + 0.5)
        prior = tf.cast(tf.math.log(share) - tf.math.log1p(-share), tf.float32)
        return tf.where((count >= 1) & (count <= most), prior, float("nan"))

    def _stem(self, words):
        """`zoo.confidence.words.stem`; the first rule that fits counts, so the last is first."""
        length = tf.strings.length(words, unit="UTF8_CHAR")
        is_plural = (length > 3) & _ends(words, "s") & ~_ends(words, "(?:us|ss|is)")
        found = tf.where(is_plural, _without(words, 1, ""), words)
        for least, ending, but, off, put in _STRIPPED:
            there = (length > least) & _ends(words, ending)
            there = there & ~_ends(words, but) if but else there
            found = tf.where(there, _without(words, off, put), found)
        irregular = self._irregular.lookup(words)
        return tf.where(irregular != "", irregular, found)


def _ends(words, pattern):
    return tf.strings.regex_full_match(words, f"(?s).*{pattern}")


def _without(words, letters, put):
    return tf.strings.regex_replace(words, f".{{{letters}}}$", put)
