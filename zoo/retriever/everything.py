"""All items that fit a question, page by page, with near copies shown once."""

import dataclasses
from typing import Any

import numpy as np

from zoo.retriever.answer import Answer

ORDERS = ("score", "name")


@dataclasses.dataclass(frozen=True, eq=False)
class Everything:
    """A page of all the items that fit a question.

    ```python
    page = retriever.all("a dog on a beach", by="name", limit=20)
    page.total, page.unfit, page.answer.names
    ```

    Attributes:
        answer: an `Answer` with the items of this page.
        copies: `(n,)`, how many near copies of each item fit too and are not shown.
        total: how many items are shown on all pages.
        offset: how many of them are on the pages before this one.
        items: how many items of the gallery fit, near copies included.
        unfit: the expected share of these that does not fit; None where there is none.
    """

    answer: Answer
    copies: np.ndarray
    total: int
    offset: int
    items: int
    unfit: float | None

    def __str__(self) -> str:
        """The page for a person."""
        first, *rows = self.answer.lines()
        noun = "item" if self.total == 1 else "items"
        lines = [first, f"{self.total:,} {noun} fit{'s' if self.total == 1 else ''}"]
        if self.unfit is not None:
            lines[-1] += f"; expect that {self.unfit:.0%} of the list does not"
        if self.items > self.total:
            lines[-1] += f". {self.items - self.total:,} near copies are not shown"
        lines[-1] += "."
        for row, copies in zip(rows, self.copies, strict=True):
            more = f"  (+{copies} near {'copy' if copies == 1 else 'copies'})" if copies else ""
            lines.append(row + more)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON values: the keys of `Answer.to_dict`, and these attributes."""
        return {
            **self.answer.to_dict(),
            "copies": self.copies.tolist(),
            "total": self.total,
            "offset": self.offset,
            "items": self.items,
            "unfit": self.unfit,
        }


def grouped(vectors: np.ndarray, copies: float) -> np.ndarray:
    """Which item each item is a near copy of, `(n,)`: itself, or the first one that is shown.

    ```python
    from zoo.retriever.everything import grouped

    grouped(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.01]]), 0.99)  # [0, 1, 0]
    ```

    Args:
        vectors: `(n, dim)` about the gallery's centre, best first.
        copies: the cosine above which two are copies, see `zoo.confidence.agreement`.
    """
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    units, owner, shown = units.astype(np.float32), np.arange(len(units)), []
    for row, own in enumerate(units):
        near = np.flatnonzero(units[shown] @ own > copies) if shown else ()
        if len(near):
            owner[row] = shown[near[0]]
        else:
            shown.append(row)
    return owner


def page_of(
    answer: Answer, owner: np.ndarray, by: str = "score", offset: int = 0, limit: int = 100
) -> Everything:
    """A page of an answer whose items all fit.

    Args:
        answer: best first.
        owner: of `grouped`.
        by: one of `ORDERS`.
        offset: how many shown items to pass over.
        limit: how many to show at most.

    Raises:
        ValueError: if the order is unknown, by names that the items lack, or a number is negative.
    """
    if by not in ORDERS:
        raise ValueError(f"`by` must be one of {ORDERS}; received {by!r}")
    if by == "name" and answer.names is None:
        raise ValueError("`by` must be 'score': the items have no names")
    if offset < 0 or limit < 1:
        raise ValueError(
            f"`offset` must be at least 0 and `limit` at least 1; received {offset} and {limit}"
        )
    shown, counts = np.unique(owner, return_counts=True)  # best first
    if by == "name":
        order = sorted(range(len(shown)), key=lambda n: answer.names[shown[n]])
        shown, counts = shown[order], counts[order]
    rows, counts = shown[offset : offset + limit], counts[offset : offset + limit]
    names = None if answer.names is None else [answer.names[row] for row in rows]
    return Everything(
        dataclasses.replace(
            answer,
            ids=answer.ids[rows],
            scores=answer.scores[rows],
            names=names,
            fits=None if answer.fits is None else answer.fits[rows],
        ),
        counts - 1,
        len(shown),
        offset,
        len(owner),
        None if not len(owner) else float(1 - np.mean(answer.fits)),
    )
