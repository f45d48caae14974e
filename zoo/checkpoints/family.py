"""What a published family of models is: how its files are recognised, and how they are read."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import keras

from halo_search.errors import InputError, require
from zoo.data.text.bert_tokenizer import read_bert_tokenizer
from zoo.data.text.clip_tokenizer import read_clip_tokenizer
from zoo.data.text.vocabulary_tokenizer import of_word_ids, read_vocabulary_tokenizer
from zoo.encoders.subwords import CLIP, WEB, HubTokenizer
from zoo.encoders.weight_arrays import WeightArrays
from zoo.models.dual_encoder import DualEncoder

# Names under which the files lie in folders on hubs, the first that is there is read.
_MERGES = ("bpe_simple_vocab_16e6.txt.gz", "bpe_simple_vocab_16e6.txt", "merges.txt")
_VOCABULARIES = (
    "coco_vocab.pkl",
    "vocab.json",
    "coco_precomp_vocab.json",
    "f30k_precomp_vocab.json",
)
_PIECES = ("spiece.model", "sentencepiece.model", "tokenizer.model")


@dataclasses.dataclass(frozen=True)
class Source:
    """What was given to `from_checkpoint`: arrays, `config.json` (empty without one), a tokenizer
    or the path of its file, and the folder (None of a file alone)."""

    arrays: WeightArrays
    config: dict[str, Any]
    tokenizer: keras.layers.Layer | str | None = None
    folder: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True)
class Family:
    """A published family: its name, arrays that all its files have, and `build` of a `Source`."""

    name: str
    marks: tuple[str, ...]
    build: Callable[[Source], DualEncoder]

    def fits(self, names: set[str]) -> bool:
        """Whether a file with arrays of these names is of this family."""
        return all(mark in names for mark in self.marks)


def check_settings(
    config: dict[str, Any], expected: dict[str, tuple[Any, ...]], known: tuple[str, ...], where: str
) -> None:
    """Raises InputError if a setting in a part of `config.json` has another value, or is not known:
    it may change the network."""
    for key, value in config.items():
        if key in expected and value not in expected[key]:
            may_be = " or ".join(repr(allowed) for allowed in expected[key])
            raise InputError(
                f"{where}: `{key}` must be {may_be}, which this network hosts exactly; received "
                f"{value!r}"
            )
        if key not in expected and key not in known:
            raise InputError(
                f"{where}: `{key}` = {value!r} is not known, and may change the network"
            )


def check_no_order(source: Source) -> None:
    """Raises InputError if a file of PyTorch is of order embeddings, which its options say alone:
    their absolute values and their similarity are not in the zoo."""
    options = source.arrays.extra.get("opt")
    if any(getattr(options, name, False) for name in ("use_abs", "order")):
        raise InputError(f"{source.arrays.path}: order embeddings are not hosted (`use_abs`)")


def clip_tokenizer(source, max_words: int) -> keras.layers.Layer | None:
    """CLIP's tokenizer: the given one, that of a file of merges, or of one in the folder."""
    given = _given(source, _MERGES)
    return read_clip_tokenizer(given, max_words) if isinstance(given, pathlib.Path) else given


def prolip_tokenizer(source, max_words: int) -> keras.layers.Layer | None:
    """ProLIP's tokenizer: SigLIP's SentencePiece with canonical text, rows filled with its end
    token, or CLIP's (H/14)."""
    given = _given(source, (*_PIECES, *_MERGES))
    if not isinstance(given, pathlib.Path):
        return given
    if given.suffix == ".model":
        return siglip_tokenizer(given, max_words)
    clip = read_clip_tokenizer(given, max_words)
    return HubTokenizer(
        clip.tokenizer, max_words, clip.ends, padding=clip.ends[1], cleaning=CLIP, name="tokenizer"
    )


def siglip_tokenizer(path: pathlib.Path, max_words: int) -> HubTokenizer:
    """SigLIP's tokenizer of a SentencePiece file, with OpenCLIP's canonical text."""
    hub = require("keras_hub", extra="models")
    try:
        tokenizer = hub.models.SigLIPTokenizer(str(path))
    except Exception as error:  # SentencePiece's own
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"{path}: not a SentencePiece model of SigLIP: {reason}") from error
    end = int(tokenizer.end_token_id)
    return HubTokenizer(
        tokenizer, max_words, (None, end), padding=end, cleaning=WEB, name="tokenizer"
    )


def bert_tokenizer(source, words: int, max_words: int) -> keras.layers.Layer | None:
    """BERT's tokenizer, of its `vocab.txt`."""
    given = _given(source, ("vocab.txt",))
    if not isinstance(given, pathlib.Path):
        return given
    return _checked(read_bert_tokenizer(given, max_words), words, given)


def vocabulary_tokenizer(source, words: int, max_words: int) -> keras.layers.Layer | None:
    """The word tokenizer of VSE++, PCME and SGRAF, of a vocabulary's file or a `.pth`'s
    `word2idx`."""
    given = _given(source, _VOCABULARIES)
    stored = source.arrays.extra.get("word2idx")
    if isinstance(given, keras.layers.Layer):
        return given
    if given is not None:
        tokenizer = read_vocabulary_tokenizer(given, max_words)
    elif isinstance(stored, dict):
        given, tokenizer = source.arrays.path, of_word_ids(stored, source.arrays.path, max_words)
    else:
        return None
    return _checked(tokenizer, words, given)


def _checked(tokenizer, words, given):
    """A tokenizer with as many words as the network has vectors."""
    if tokenizer.vocabulary_size() != words:
        raise InputError(
            f"{given}: expected {words:,} words, as the network has; received "
            f"{tokenizer.vocabulary_size():,}"
        )
    return tokenizer


def _given(source, names):
    """The tokenizer that was given, or a path, or None."""
    given = source.tokenizer
    if isinstance(given, keras.layers.Layer):
        return given
    if given is not None:
        path = pathlib.Path(given).expanduser()
        if path.is_file():
            if path.suffix not in {pathlib.PurePath(name).suffix for name in names}:
                raise InputError(f"`tokenizer`: {path}: expected a file such as {', '.join(names)}")
            return path
        folder = path
        if not folder.is_dir():
            raise InputError(f"`tokenizer`: {path}: no such file; expected {', '.join(names)}")
    elif source.folder is None:
        return None
    else:
        folder = source.folder
    existing = next((folder / name for name in names if (folder / name).is_file()), None)
    if existing is None and given is not None:
        raise InputError(f"`tokenizer`: {folder}: expected one of {', '.join(names)} in it")
    return existing
