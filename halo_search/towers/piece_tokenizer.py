"""The tokenizers that lie beside an index, and those of SentencePiece, without TensorFlow."""

import base64
import json
import re
import string
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tokenizers

from halo_search.errors import require

CLIP, LOWER, CANONICAL, WEB, NOTHING = CLEANINGS = (
    *("clip", "lower", "canonical", "web", "nothing"),
)
_MARK = '{"sentencepiece":'  # how a file begins
_SMALL = {ord(one): one.lower() for one in string.ascii_uppercase}
_BARE = {ord(one): None for one in string.punctuation}
_BLANKS = " \t\n\f\r"  # of RE2


class PieceTokenizer:
    """Strings to rows of ids by a SentencePiece model (base 64), as a `tokenizers.Tokenizer` gives
    them, which normalises rare letters otherwise and loads Gemma's pieces eight times as long."""

    def __init__(
        self,
        sentencepiece: str,
        cleaning: str,  # one of `CLEANINGS`, as of `zoo.encoders.subwords.HubTokenizer`
        ends: Sequence[int | None],  # the first and last id of a row
        most: int,  # ids of the longest row, with its ends
        padding: int,
        length: int | None,  # to which rows are filled, None: of the longest
        unknown: int = 0,  # the id of SentencePiece's 0
        offset: int = 0,  # what is added to its others
    ):
        self._settings = {name: value for name, value in locals().items() if name != "self"}
        library = require("sentencepiece", extra="models")
        self._pieces = library.SentencePieceProcessor(model_proto=base64.b64decode(sentencepiece))
        self._ends = [[] if end is None else [end] for end in ends]

    def encode_batch(self, texts: Sequence[str]) -> list[SimpleNamespace]:
        """A row for each text, whose `ids` are a list."""
        facts, (first, last) = self._settings, self._ends
        texts = [_clean(text, facts["cleaning"]) for text in texts]
        room = facts["most"] - len(first) - len(last)
        rows = []
        for found in self._pieces.encode(texts, out_type=int):
            ids = [one + facts["offset"] if one else facts["unknown"] for one in found[:room]]
            rows.append(first + ids + last)
        width = facts["length"] or max(map(len, rows), default=0)
        pad = [facts["padding"]] * width
        return [SimpleNamespace(ids=row + pad[len(row) :]) for row in rows]

    def enable_padding(self, pad_id: int, pad_token: str = "", length: int | None = None) -> None:
        """Fills rows up to `length`, or to the longest of its batch."""
        self._settings |= {"padding": pad_id, "length": length}

    def get_vocab(self) -> dict[str, int]:
        """None: what it does not know it spells, and people write in more languages than one."""
        return {}

    def to_str(self) -> str:
        """The contents of its file, for `read_tokenizer`."""
        return json.dumps(self._settings)

    def save(self, path: str) -> None:
        """Writes its file."""
        Path(path).write_text(self.to_str())


def read_tokenizer(contents: bytes) -> Any:
    """The `tokenizers.Tokenizer` or `PieceTokenizer` of a file. Raises ValueError or TypeError if
    it is none."""
    if contents.startswith(_MARK.encode()):
        return PieceTokenizer(**json.loads(contents))
    return tokenizers.Tokenizer.from_buffer(contents)


def _clean(text, cleaning):
    """As the graph of `HubTokenizer` does it."""
    if cleaning == LOWER:
        return text.translate(_SMALL)
    if cleaning == CANONICAL:
        text = text.translate(_SMALL).translate(_BARE)
        return re.sub(f"[{_BLANKS}]+", " ", text).strip(f"{_BLANKS}\v")
    if cleaning == WEB:
        return " ".join(text.replace("_", " ").translate(_BARE).lower().split())
    return text
