"""All items that fit a question, by pages."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halo_search.confidence.judge import FIT, NOT_UNDERSTOOD, Judgement, list_sentence
from halo_search.retriever.answer import Answer, answers
from halo_search.retriever.questions import Questions
from halo_search.retriever.results import Results

MOST_LISTED = 5000  # items with the best scores, of which all that fit are listed


@dataclasses.dataclass(frozen=True, eq=False)
class Everything:
    """A page of all the items that fit a question, as `Retriever.all` returns it."""

    answer: Answer  # with the items of this page
    total: int  # items on all pages
    offset: int  # of them on the pages before this one
    unfit: float | None  # the expected share of these that does not fit, None of none
    least: float = FIT  # the probability of fitting from which an item is on the list
    noun: str = "item"

    @property
    def question(self) -> str:
        """What was asked, see `Answer`."""
        return self.answer.question

    def __str__(self) -> str:
        """The page for a person."""
        first, *rows = self.answer.lines()
        if self.answer.verdict != NOT_UNDERSTOOD:
            rows = [list_sentence(self.noun, self.total, self.unfit, self.least), *rows]
        return "\n".join([first, *rows])

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON values: the keys of `Answer.to_dict`, and these attributes."""
        page = {"total": self.total, "offset": self.offset, "unfit": self.unfit}
        return {**self.answer.to_dict(), **page}


def page_of(
    questions: Questions,
    results: Results,
    judgement: Judgement,
    offset: int,
    limit: int,
    least: float,
    names_of: Callable[[np.ndarray], Sequence[str] | None],
    noun: str,
) -> Everything:
    """A page of the results of one question that fit with a probability of `least` or more,
    likeliest first; a ValueError if nothing says how likely they fit.

    Args:
        questions: the question alone.
        results: up to `MOST_LISTED`, `(1, depth)`.
        judgement: of the question and all of its results.
        offset, limit, least: as of `Retriever.all`.
        names_of: as of `Answer.of`.
        noun: what an item is called.
    """
    if judgement.fits is None and judgement.verdict != NOT_UNDERSTOOD:
        raise ValueError(f"nothing says which items fit: {judgement.reason}")
    likely = np.empty(0) if judgement.fits is None else judgement.fits[: results.ids.shape[1]]
    order = np.argsort(-likely, kind="stable")
    order = order[likely[order] >= least]
    unfit = float(1 - likely[order].mean()) if len(order) else None
    page = order[offset : offset + limit]
    if judgement.fits is not None:
        judgement = judgement._replace(fits=likely[page], order=None)
    listed = Results(results.scores[:, page], results.ids[:, page])
    (answer,) = answers(questions, listed, [judgement], limit, names_of)
    return Everything(answer, len(order), offset, unfit, least, noun)
