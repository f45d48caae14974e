"""Tokenizers with the ids of ours, for use without TensorFlow."""

import base64

import numpy as np
import tensorflow as tf

from halo_search.errors import require
from halo_search.towers.piece_tokenizer import PieceTokenizer
from zoo.data.text.bert_tokenizer import END, START, UNKNOWN, BertTokenizer
from zoo.data.text.captions import WordTokenizer
from zoo.data.text.clip_tokenizer import ClipTokenizer
from zoo.encoders.subwords import HubTokenizer
from zoo.layers.compat import byte_pairs_of

_SAMPLES = (
    "a red bird",
    "",
    "Two DOGS, and a cat's toy on the white-sanded beach; un café à Paris ’tis 42!",
    "zzzqx " * 120,
)
# A Σ at a word's end, which CLIP lowers as Python does; `tokenizers` takes letters one by one.
_CASED, _BETWEEN = r"[\p{Lu}\p{Ll}\p{Lt}]", r"[\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'’.:·]"
_LAST_SIGMA = rf"(?<={_CASED}|{_CASED}{_BETWEEN})Σ(?!{_BETWEEN}*{_CASED})"


def tokenizer_of(tokenizer):
    """A `tokenizers.Tokenizer` with the ids of one of ours, of SentencePiece a `PieceTokenizer`, or
    None where there is none that gives the same ids of awkward captions."""
    make = next((make for kind, make in _MAKERS if isinstance(tokenizer, kind)), None)
    if make is None:
        return None
    made = make(tokenizer)
    if not isinstance(made, PieceTokenizer):
        padding = getattr(tokenizer, "padding", 0)
        made.enable_padding(length=tokenizer.max_words, pad_id=padding, pad_token="")
        made.enable_truncation(tokenizer.max_words)
    ids = np.array([encoding.ids for encoding in made.encode_batch(list(_SAMPLES))])
    same = np.array_equal(ids, np.asarray(tokenizer(tf.constant(_SAMPLES))))
    return made if same else None


def _of_words(tokenizer):
    """The same words as a `tokenizers.Tokenizer`, which needs no TensorFlow."""
    import tokenizers  # here: most models need none

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
    """BERT's word pieces as a `tokenizers.Tokenizer`, which needs no TensorFlow."""
    import tokenizers  # here: most models need none

    pieces = {piece: row for row, piece in enumerate(tokenizer.vocabulary)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token=UNKNOWN))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{START} $0 {END}",
        special_tokens=[(token, pieces[token]) for token in (START, END)],
    )
    return made


def _of_hub(tokenizer):
    """CLIP's, or SentencePiece's."""
    hub, most = tokenizer.tokenizer, tokenizer.max_words
    if hasattr(hub, "merges"):
        return _of_byte_pairs(tokenizer)
    library = require("sentencepiece", extra="models")
    theirs = library.SentencePieceProcessor(model_proto=hub.proto)
    offset = hub.vocabulary_size() - theirs.vocab_size()  # 1 of MetaCLIP 2, as of XLM-RoBERTa
    return PieceTokenizer(
        base64.b64encode(hub.proto).decode("ascii"),
        tokenizer.cleaning,
        tokenizer.ends,
        most,
        tokenizer.padding,
        length=most,
        unknown=int(hub.unk_token_id) if offset else 0,
        offset=offset,
    )


def _of_byte_pairs(tokenizer):
    """Byte pairs as a `tokenizers.Tokenizer`, which needs no TensorFlow."""
    import tokenizers  # here: most models need none

    made, ends = byte_pairs_of(tokenizer.tokenizer), tokenizer.ends
    normalizers = tokenizers.normalizers
    last = normalizers.Replace(tokenizers.Regex(_LAST_SIGMA), "ς")
    made.normalizer = normalizers.Sequence([normalizers.NFC(), last, made.normalizer])
    start, end = (made.id_to_token(token) for token in ends)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{start} $0 {end}", special_tokens=list(zip((start, end), ends, strict=True))
    )
    return made


_MAKERS = (
    (WordTokenizer, _of_words),
    (BertTokenizer, _of_pieces),
    (ClipTokenizer, _of_byte_pairs),
    (HubTokenizer, _of_hub),
)
