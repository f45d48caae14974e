"""Tokenizers of the package `tokenizers` with the ids of ours, for use without TensorFlow."""

import numpy as np
import tensorflow as tf

from zoo.data.text.bert_tokenizer import END, START, UNKNOWN, BertTokenizer
from zoo.data.text.captions import WordTokenizer
from zoo.errors import require

_SAMPLES = (
    "a red bird",
    "",
    "Two DOGS, and a cat's toy on the white-sanded beach; un café à Paris ’tis 42!",
    "zzzqx " * 120,
)


def tokenizer_of(tokenizer):
    """A `tokenizers.Tokenizer` with the ids of one of ours, or None where there is none: it is
    compared on awkward captions, and one that gives other ids is not written."""
    if not isinstance(tokenizer, (WordTokenizer, BertTokenizer)):
        return None
    made = (_of_words if isinstance(tokenizer, WordTokenizer) else _of_pieces)(tokenizer)
    made.enable_padding(length=tokenizer.max_words, pad_id=0, pad_token="")
    made.enable_truncation(tokenizer.max_words)
    found = np.array([one.ids for one in made.encode_batch(list(_SAMPLES))])
    same = np.array_equal(found, np.asarray(tokenizer(tf.constant(_SAMPLES))))
    return made if same else None


def _of_words(tokenizer):
    tokenizers = require("tokenizers", extra="search")
    words = {str(word): row for row, word in enumerate(tokenizer.get_vocabulary())}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    normalizers = tokenizers.normalizers
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(tokenizers.Regex("['’]"), ""),
            normalizers.Replace(tokenizers.Regex(r"[^\p{L}\p{M}\p{N}]+"), " "),
        ]
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return made


def _of_pieces(tokenizer):
    tokenizers = require("tokenizers", extra="search")
    pieces = {piece: row for row, piece in enumerate(tokenizer.vocabulary)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token=UNKNOWN))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{START} $0 {END}",
        special_tokens=[(token, pieces[token]) for token in (START, END)],
    )
    return made
