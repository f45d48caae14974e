"""Questions as they come, texts, pictures or embeddings, and how they are embedded."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo.embeddings.arrays import as_arrays, as_rows, joined, length
from zoo.files.decoding import SUFFIXES


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
