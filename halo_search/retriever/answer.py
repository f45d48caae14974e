"""What a gallery answers to one question, and whether to believe it."""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halo_search.confidence.judge import FIT, Judgement, headline, leading
from halo_search.retriever.questions import Questions
from halo_search.retriever.results import Results


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """The best items for one question, how likely each fits, and what follows from it.

    ```python
    answer = retriever.ask("a dog on a beach")
    answer.verdict, answer.probability  # ("likely", 0.83)
    answer.ids[: answer.fitting]        # the results that fit
    ```

    Attributes:
        question: the text, or a word on what was asked with.
        ids, scores: `(k,)` int64 and float32 in units of the similarity. Results of a question in
            words are listed by `fits`, later than the best 20 and of others by score.
        names: `(k,)` strings where the items have names, else None.
        verdict: `"likely"`, `"unsure"`, `"nothing matches"` or `"not understood"`.
        reason: a sentence, and a second one where the calibration needs a note.
        fits: `(k,)`, the probability that each result fits, as people judge it (of a class, that it
            is of the class), never rising where the question is in words; None where nothing can
            be said, which `reason` explains.
        wanted: the probability that the first result is the one wanted item, or None.
        number: how many items of the gallery are expected to fit, or None.
        interval: `(low, high)` of the share of fitting first results in nine galleries of ten, or
            None.
        asked: what the model was asked, where a preamble such as "photos of" was taken off, or a
            typo corrected.
    """

    question: str
    ids: np.ndarray
    scores: np.ndarray
    names: Sequence[str] | None
    verdict: str
    reason: str
    fits: np.ndarray | None = None
    wanted: float | None = None
    number: float | None = None
    interval: tuple[float, float] | None = None
    asked: str | None = None
    _length: Callable | None = dataclasses.field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        question: str,
        asked: str | None,
        results: Results,
        judgement: Judgement,
        names_of: Callable[[np.ndarray], Sequence[str] | None],
    ) -> "Answer":
        """The answer to one question.

        Args:
            question: what to call it; a text as it was typed.
            asked: the text that the model was asked; None of pictures and embeddings.
            results: of this question alone, `(k,)` scores and ids; those behind the last candidate
                are left out.
            judgement: of the question and of these or more results.
            names_of: function from ids to what the items are called, or None.
        """
        exists = results.ids >= 0
        fits = judgement.fits
        return cls(
            question,
            results.ids[exists],
            results.scores[exists],
            names_of(results.ids[exists]),
            judgement.verdict,
            judgement.reason,
            fits=None if fits is None else fits[: len(exists)][exists],
            wanted=judgement.wanted,
            number=judgement.number,
            interval=judgement.interval,
            asked=None if asked == question else asked,
            _length=judgement.length,
        )

    @property
    def probability(self) -> float | None:
        """The probability that the first result fits; None where nothing can be said."""
        return None if self.fits is None or not len(self.fits) else float(self.fits[0])

    @property
    def fitting(self) -> int | None:
        """How many of the first results fit: those before the first with a probability below ½."""
        return None if self.fits is None else leading(self.fits, FIT)

    def first_k(self, error: float = 0.1) -> int | None:
        """How many of the first results hold the wanted one with probability 1 − error; the largest
        int where nothing can be promised, None where the gallery is not calibrated."""
        return None if self._length is None else self._length(error)

    def __str__(self) -> str:
        """The answer for a person: the verdict, then the results."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """What is printed: the verdict, and a line for each result."""
        asked = "" if self.asked is None else f" (asked: {self.asked})"
        lines = [f"{headline(self.verdict, self.probability, self.wanted)}{asked}: {self.reason}"]
        names = self.names or list(map(str, self.ids))
        for rank, (score, name) in enumerate(zip(self.scores, names, strict=True)):
            fit = "    " if self.fits is None else f"{self.fits[rank]:.2f}"
            lines.append(f"{rank + 1:4d}  {fit} {score:12.5g}  {name}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values."""
        enough = self.first_k()
        values = {
            "question": self.question,
            "asked": self.question if self.asked is None else self.asked,
            "verdict": self.verdict,
            "reason": self.reason,
            "probability": self.probability,
            "interval": None if self.interval is None else list(self.interval),
            "wanted": self.wanted,
            "fitting": self.fitting,
            "number": self.number,
            "first_k": None if enough is None or enough == sys.maxsize else enough,
            "ids": self.ids.tolist(),
            "scores": [float(score) for score in self.scores],
            "fits": None if self.fits is None else [float(value) for value in self.fits],
        }
        return values if self.names is None else {**values, "names": list(self.names)}


def answers(
    questions: Questions,
    results: Results,
    judgements: Sequence[Judgement],
    k: int,
    names_of: Callable[[np.ndarray], Sequence[str] | None],
) -> list[Answer]:
    """An `Answer` of the first k results of each question, as they are listed; arguments as of
    `Answer.of`."""
    texts = [None] * len(questions) if questions.texts is None else questions.texts
    rows = zip(questions.names, texts, *results, judgements, strict=True)
    return [
        Answer.of(name, text, *_listed(Results(scores, ids), judgement, k), names_of)
        for name, text, scores, ids, judgement in rows
    ]


def _listed(results, judgement, k):
    """The first k of one question's results, `(depth,)` best score first, in the order in which
    they are listed, and their judgement."""
    if judgement.order is None:
        return results.take(slice(k)), judgement
    return results.take(judgement.order[:k]), judgement.listed()
