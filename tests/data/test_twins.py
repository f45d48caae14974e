"""Twins of the tokenizers of hosted models: the same ids without TensorFlow, in all scripts."""

import numpy as np
import pytest

from halo_search.towers.piece_tokenizer import read_tokenizer
from tiny_hub import FAMILIES, SIZE, sentence_pieces, siglip_pieces, tiny_hub
from zoo.checkpoints.family import siglip_tokenizer
from zoo.data import read_clip_tokenizer
from zoo.data.text.twin import tokenizer_of
from zoo.encoders.subwords import HubTokenizer

pytest.importorskip("keras_hub")
WORDS = "a photo of two DOGS' running on the beach, it's DON'T 2017 12th ½ red_bird İ ΟΔΟΣ"
SCRIPTS = [(0x20, 0x250), (0x300, 0x600), (0x370, 0x400), (0x900, 0xE00), (0x1100, 0x1200),
           (0x1E00, 0x2000), (0x2000, 0x2C00), (0x3000, 0x3200), (0x4E00, 0x4F00),
           (0xAC00, 0xAD00), (0xF900, 0x10000), (0x1D400, 0x1D800), (0x1F300, 0x1F700),
           (0x20000, 0x20100)]  # fmt: skip
# CLIP lowers a last Σ to ς, KerasHub to σ; in a graph KerasHub takes ६ for a mark.
SIGMA, MARK = "Σ", "\u096c"


@pytest.fixture(scope="module")
def texts():
    rng, made = np.random.default_rng(0), ["", "  ", "a" * 200]
    while len(made) < 2000:
        script, words = SCRIPTS[rng.integers(len(SCRIPTS))], []
        for _ in range(rng.integers(1, 8)):
            letters = "".join(map(chr, rng.integers(*script, rng.integers(1, 6))))
            words.append(str(rng.choice(WORDS.split())) if rng.random() < 0.5 else letters)
        text = str(rng.choice([" ", "  ", "\t", "\u3000"])).join(words)
        made.append(text.upper() if rng.random() < 0.2 else text)
    return made


def same(ours, texts, path):
    """Ids of a tokenizer, to which those of its twin are equal once it is saved."""
    tokenizer_of(ours).save(str(path))
    ids = [one.ids for one in read_tokenizer(path.read_bytes()).encode_batch(texts)]
    rows = [MARK not in text for text in texts]
    equal(np.array(ids)[rows], np.asarray(ours(texts))[rows])
    return np.array(ids)


def equal(found, expected):
    """The SentencePiece of tensorflow_text is older: of pieces in two orders, such as ". .." and
    ".. .", which are as likely, it may take the other."""
    assert (found != expected).any(axis=1).sum() <= 2
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))


@pytest.mark.parametrize("family", FAMILIES)
def test_twins_give_the_ids_of_keras_hub(family, texts, tmp_path):
    _, preprocessor = tiny_hub(family)
    kept = [text for text in texts if family != "clip" or SIGMA not in text]
    if family == "clip":
        preprocessor.to_lower = False  # before letters are composed: its tokenizer does it after
    else:  # with pieces of all these scripts
        ids = {"clip": {}, "siglip": {"eos_id": 1, "unk_id": 2, "pad_id": 0, "bos_id": -1}}
        ids["metaclip2"] = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
        ids["siglip2"] = {
            **{"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3},
            **{"pad_piece": "<pad>", "eos_piece": "<eos>", "bos_piece": "<bos>"},
            **{"model_type": "bpe", "byte_fallback": True, "split_digits": True},
            **{"normalization_rule_name": "identity", "add_dummy_prefix": False},
            **{"remove_extra_whitespaces": False},
        }
        pieces = sentence_pieces(texts[3::4], 4000, hard_vocab_limit=False, **ids[family])
        preprocessor.tokenizer.set_proto(pieces)
    preprocessor.sequence_length = 64
    ours = HubTokenizer.of(preprocessor, 64)
    found = same(ours, kept, tmp_path / "tokenizer.json")
    pictures = np.zeros((len(kept), SIZE, SIZE, 3), "float32")
    theirs = preprocessor({"prompts": kept, "images": pictures})["token_ids"]
    equal(found, np.asarray(theirs))


def test_prolips_twin_cleans_as_openclip(texts, tmp_path):
    path = tmp_path / "spiece.model"
    path.write_bytes(siglip_pieces(texts[3::4], 4000))
    same(siglip_tokenizer(path, 64), texts, tmp_path / "tokenizer.json")


@pytest.mark.very_slow
def test_clips_own_vocabulary(shared_data, texts, tmp_path):
    ours = read_clip_tokenizer(shared_data / "clip_bpe" / "bpe_simple_vocab_16e6.txt.gz")
    found = same(ours, texts, tmp_path / "tokenizer.json")
    kept = [row for row, text in enumerate(texts) if SIGMA not in text]
    theirs = ours.tokenizer([texts[row] for row in kept])
    for row, ids in zip(kept, theirs, strict=True):
        expected = [ours.ends[0], *ids[:75], ours.ends[1]]
        assert found[row].tolist() == expected + [0] * (77 - len(expected))
