"""Ids of published checkpoints against the official tokenizers, written out in Python."""

import functools
import gzip
import html
import itertools
import json
import re
import string

import numpy as np
import pytest
import regex
import sentencepiece

import halo_search
import released
import zoo
from tiny_hub import siglip_pieces
from zoo.checkpoints.family import siglip_tokenizer
from zoo.data import read_clip_tokenizer

NOUNS = ("dog", "red-crowned bird", "Ferris wheel", "café", "T-shirt", "bus_stop", "snowboarder",
         "woman's hat", "2nd-floor window", "Löwenzahn")  # fmt: skip
FRAMES = (
    "a photo of a {}",
    "A {}, {}!",
    "{} next to the {}...",
    "isn't it a {}?",
    "two {}s & one {} (2019)",
    "the {}'s   owner\tdidn't see: {}",
    "{}",
    "“{}” — {} 100% #fun @home",
    "they'll say \"{}\" {} I'VE",
    "Ünïcode {} 日本 ½ ١٢٣",
    "   leading and trailing {}   ",
    "{} " * 30,
    "__{}__ *{}* [{}] <{}>",
    "3,000 {}s at 5:30pm",
    "É{}È STRAßE",
    "~{}`|^ {{ {}",
    "a\u00a0{}\u3000b\u2009c\x0bd\x85e",
    "ΣΑΣ {} ǅ",
    "don't! won't? {}; {}",
    "{}\n{}",
)
TEXTS = [frame.replace("{}", "{0}").format(noun) for frame in FRAMES for noun in NOUNS]


def clip_ids(path, texts, length):
    """`SimpleTokenizer.encode` of OpenAI and OpenCLIP, less ftfy, which these texts do not need."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = dict(zip(printable, map(chr, printable), strict=True))
    symbols |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")
    lines = lines[1 : 49152 - 256 - 2 + 1]
    merges = [tuple(line.split()) for line in lines]
    words = [*symbols.values(), *(one + "</w>" for one in symbols.values())]
    words += ["".join(pair) for pair in merges] + ["<start_of_text>", "<end_of_text>"]
    encoder = {word: place for place, word in enumerate(words)}
    ranks = {pair: place for place, pair in enumerate(merges)}
    pattern = regex.compile(
        r"<start_of_text>|<end_of_text>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
        regex.IGNORECASE,
    )

    @functools.cache
    def pieces(word):
        parts = [*word[:-1], word[-1] + "</w>"]
        while len(parts) > 1:
            pairs = list(itertools.pairwise(parts))
            best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                break
            merged, place = [], 0
            while place < len(parts):
                if tuple(parts[place : place + 2]) == best:
                    merged.append("".join(best))
                    place += 2
                else:
                    merged.append(parts[place])
                    place += 1
            parts = merged
        return parts

    rows = np.zeros((len(texts), length), "int32")
    for row, text in zip(rows, texts, strict=True):
        text = html.unescape(html.unescape(text)).strip()
        text = re.sub(r"\s+", " ", text).strip().lower()
        ids = [encoder["<start_of_text>"]]
        for token in regex.findall(pattern, text):
            word = "".join(symbols[byte] for byte in token.encode("utf-8"))
            ids += [encoder[piece] for piece in pieces(word)]
        ids = [*ids, encoder["<end_of_text>"]][:length]
        ids[-1] = encoder["<end_of_text>"]
        row[: len(ids)] = ids
    return rows


def test_pcmepps_ids_are_those_of_the_official_tokenizer(shared_data):
    path = shared_data / "clip_bpe" / "bpe_simple_vocab_16e6.txt.gz"
    found = np.asarray(read_clip_tokenizer(path, 77)(TEXTS))
    np.testing.assert_array_equal(found, clip_ids(path, TEXTS, 77))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    path = tmp_path_factory.mktemp("siglip") / "spiece.model"
    path.write_bytes(siglip_pieces([canonical(text) for text in TEXTS if text.strip()], 150))
    return path


def canonical(text):
    """`canonicalize_text` of big_vision and OpenCLIP."""
    text = text.replace("_", " ").translate(str.maketrans("", "", string.punctuation)).lower()
    return re.sub(r"\s+", " ", text).strip()


def test_prolips_ids_are_those_of_the_official_tokenizer(pieces):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    length = 24
    rows = np.full((len(TEXTS), length), 1, "int32")
    for row, text in zip(rows, TEXTS, strict=True):
        ids = processor.encode(canonical(text))[: length - 1]
        row[: len(ids)] = ids
    np.testing.assert_array_equal(siglip_tokenizer(pieces, length)(TEXTS), rows)


def test_a_model_with_its_tokenizer_is_saved_whole(pieces, tmp_path):
    about, shapes, _ = released.described("prolip_tiny")
    folder = released.write(tmp_path / "hub", released.weights(shapes), about["config"])
    with pytest.raises(halo_search.errors.InputError, match=r"`tokenizer`: .*none: no such file"):
        zoo.from_checkpoint(folder, tokenizer=folder / "none")
    with pytest.raises(
        halo_search.errors.InputError, match=r"config.json: expected a file such as spiece"
    ):
        zoo.from_checkpoint(folder, tokenizer=folder / "config.json")
    (folder / "spiece.model").write_bytes(pieces.read_bytes())
    model = zoo.from_checkpoint(folder)
    given = zoo.from_checkpoint(folder / "model.safetensors", tokenizer=pieces)
    texts = ["A dog, isn't it?", "red_bird"]
    expected = model.encode_captions(texts).mean()
    np.testing.assert_array_equal(given.encode_captions(texts).mean(), expected)
    zoo.save_preset(model, tmp_path / "preset")
    again = zoo.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(again.encode_captions(texts).mean(), expected, atol=1e-6)


def test_a_vocabulary_of_another_size_is_refused(tmp_path):
    from zoo.checkpoints.family import Source, vocabulary_tokenizer

    words = ["<pad>", "<start>", "<end>", "<unk>", "a"]
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({word: place for place, word in enumerate(words)}))
    folder = released.write(tmp_path / "hub", {"weight": np.ones(2, "float32")})
    arrays = zoo.encoders.weight_arrays.WeightArrays(folder / "model.safetensors", "arrays")
    with pytest.raises(halo_search.errors.InputError, match=r"expected 11,755 words.*; received 5"):
        vocabulary_tokenizer(Source(arrays, {}, path), 11755, 64)
    found = vocabulary_tokenizer(Source(arrays, {}, path), 5, 6)
    np.testing.assert_array_equal(found(["a bird"]), [[1, 4, 3, 2, 0, 0]])
