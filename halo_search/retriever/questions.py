"""Questions as they come, texts, pictures or embeddings, without the words around what is asked."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from halo_search.confidence.words import ARTICLES, FUNCTION_WORDS, stems, words_of
from halo_search.embeddings.arrays import as_arrays, as_rows, joined, length
from halo_search.files.decoding import SUFFIXES

_PICTURES = r"(?:photo|picture|pic|image|photograph|shot|snap|snapshot)s?"
# Patterns at the start of a question, in lower case, tried in turn until none fits.
PREAMBLES = (
    r"(?:please|hey|hi|hello|ok|okay|so|and)[,.!]? +",
    r"(?:can|could|would|will) (?:you|we|i)(?: please)? +",
    r"(?:show|find|give|get|bring|fetch|send)(?: me| us) +",
    r"(?:search|look|looking|searching|query) for +",
    r"(?:show|find|list|display|get|see|search|give|open)"
    rf"(?= +(?:all |any |some |every |the |my |our |me |a )*{_PICTURES}\b) +",
    r"(?:find|list|display) +(?:all|any|every|some) +",
    r"(?:i|we)(?: am| are|'m|'re)(?: looking| searching) for +",
    r"(?:i|we)(?: want| need| would like|'d like| wish| would love)"
    r"(?: to (?:see|find|look at|get))? +",
    r"(?:do|did) (?:i|we|you) (?:have|take|own)(?: got)? +",
    r"have (?:i|we|you) (?:got|taken|any) +",
    r"(?:is|are|were|was) there +",
    r"(?:where|which|what) (?:is|are) +",
    rf"(?:which|what) +{_PICTURES} +(?:have|show|contain|include|are of) +",
    rf"(?:which|what) +(?={_PICTURES}\b)",
    r"where (?:can|do) (?:i|we|you) (?:find|see) +",
    rf"(?:all|any|some|every|the|my|our|your|me|us|a|an|this|these|those|more|other)(?: of)?"
    rf"(?: the| my| our)?(?= +{_PICTURES}\b) +",
    rf"{_PICTURES}(?: taken)? +(?:of|with|showing|containing|featuring|from|about|for|at|on|where|"
    r"in which|(?:that|which) (?:show|shows|have|has|contain|contains)|having|including)"
    r"(?: there (?:is|are))? +",
    r"(?:my|our|your) +",
)
ENDINGS = (
    r"[ ,.?!]+$",
    r"[ ,]+(?:please|thanks|thank you)$",
    rf" +(?:in|among|from) (?:this|the|these|those|my|our)(?: own)? (?:{_PICTURES}|gallery|album|"
    r"collection|library|folder)$",
    rf" +{_PICTURES}$",
)
_STARTS = tuple(re.compile(pattern) for pattern in PREAMBLES)
_ENDS = tuple(re.compile(pattern) for pattern in ENDINGS)


class Questions(NamedTuple):
    """Questions of one kind."""

    embeddings: dict[str, np.ndarray]
    side: str  # what they are of
    called: list[str]
    texts: list[str] | None = None  # as they were asked


def embedded(
    questions: Sequence[Any], tower: Callable[[str], Any], side: str, as_asked: Callable[[str], str]
) -> Questions:
    """Questions of one kind, embedded by `tower(side)`, of texts what `as_asked` makes of them; a
    ValueError if they are of several kinds, or no embeddings."""
    kinds = {_kind_of(question) for question in questions}
    if len(kinds) > 1:
        raise ValueError(f"questions must be of one kind; received {' and '.join(kinds)}")
    (kind,) = kinds
    if kind == "text":
        for question in questions:
            check_text(question)
        texts = [as_asked(question) for question in questions]
        return Questions(tower("captions").of_texts(texts), "captions", questions, texts)
    if kind != "embedding":
        called = [str(one) if kind == "file" else "a picture" for one in questions]
        return Questions(tower("images").of_files(questions), "images", called)
    rows = [as_rows(one) for one in questions]
    embeddings = joined([as_arrays(row, "question") for row in rows])
    return Questions(embeddings, side, ["an embedding"] * length(embeddings))


def check_text(question: str) -> None:
    """Raises ValueError for the name of a picture, which nobody means as a text."""
    name = question.strip()
    if len(name.split()) == 1 and Path(name).suffix.lower() in SUFFIXES:
        raise ValueError(
            f"{question!r} is the name of a picture, and a question is a text; ask with the "
            "picture itself: --image FILE, or pathlib.Path(FILE) in Python"
        )


def _kind_of(question):
    if isinstance(question, str):
        return "text"
    if isinstance(question, os.PathLike):
        return "file"
    if isinstance(question, bytes) or hasattr(question, "convert"):
        return "picture"
    rank, kind = getattr(question, "ndim", 0), getattr(question, "dtype", None)
    if rank == 3 or (rank == 2 and kind == np.uint8):  # grey; embeddings are floats
        return "picture"
    return "embedding"


def asked_for(text: str) -> str:
    """A question without a search box' preambles and endings, which lower every score; the text
    itself where nothing would be left, or nothing was taken off."""
    left = " ".join(text.split())
    start, end = 0, len(left)
    lower = left.lower()
    if len(lower) != len(left):  # a letter whose lower case is longer: places would not agree
        return text
    changed, taken = True, False
    while changed:
        changed = False
        for pattern in _STARTS:
            found = pattern.match(lower, start, end)
            if found and start < found.end() < end:
                start, changed, taken = found.end(), True, True
        for pattern in _ENDS:
            found = pattern.search(lower[:end], start)
            if found and found.start() > start:
                end, changed = found.start(), True
                taken = taken or pattern is not _ENDS[0]  # a full stop alone is the text's own
    kept = left[start:end]
    is_empty = not any(word not in FUNCTION_WORDS for word in words_of(kept))
    return text if is_empty or not taken else kept


def as_asked(text: str) -> str:
    """A question as a model is asked it: `asked_for`, and a single word without its article."""
    text = asked_for(text)
    words = text.split()
    if len(words) > 1 and words[0].lower() in ARTICLES and len(stems(text)) == len(words) - 1 == 1:
        return " ".join(words[1:])
    return text
