"""What a gallery answers to one question, and whether to believe it."""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zoo.confidence.judge import LIKELY, UNSURE


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """The best items for one question, how likely the first is right, and what follows of it.

    ```python
    answer = retriever.ask("a dog on a beach")
    answer.verdict, answer.probability  # ("likely", 0.83)
    answer.first_k(0.1)                 # so many results hold the wanted one 9 times in 10
    ```

    Attributes:
        question: the text, or a word on what was asked with.
        ids: `(k,)` int64 of the items, best first.
        scores: `(k,)` float32, in units of the similarity.
        names: `(k,)` strings where the items have names, else None.
        probability: that the first answer is right, or None where nothing can be said.
        verdict: `"likely"`, `"unsure"`, `"nothing matches"` or `"not understood"`.
        reason: one sentence.
        interval: `(low, high)`, between which the share of such questions lies that find the right
            one first, in nine galleries of ten, see `Confidence.interval`; None without a
            probability.
        asked: what the model was asked: the question without a preamble such as "photos of".
    """

    question: str
    ids: np.ndarray
    scores: np.ndarray
    names: Sequence[str] | None
    probability: float | None
    verdict: str
    reason: str
    interval: tuple[float, float] | None = None
    asked: str | None = None
    _length: Callable | None = dataclasses.field(default=None, repr=False)

    def first_k(self, error: float = 0.1) -> int | None:
        """How many of the first results hold the wanted one with probability 1 − error.

        Args:
            error: in (0, 1).

        Returns:
            An int, for this question; `sys.maxsize` where nothing can be promised. None where the
            gallery is not calibrated.

        Raises:
            ValueError: if `error` is not in (0, 1).
        """
        return None if self._length is None else self._length(error)

    def __str__(self) -> str:
        """The answer for a person: the verdict, then the results."""
        probability = "" if self.probability is None else f", {self.probability:.2f}"
        asked = "" if self.asked in (None, self.question) else f" (asked: {self.asked})"
        lines = [f"{self.verdict}{probability}{asked}: {self.reason}"]
        enough = self.first_k() if self.verdict in (LIKELY, UNSURE) else None
        if enough is not None and len(self.ids) < enough < sys.maxsize:
            lines[0] += f" The first {enough:,} hold it 9 times in 10."
        names = self.names or map(str, self.ids)
        for rank, (score, name) in enumerate(zip(self.scores, names, strict=True), start=1):
            lines.append(f"{rank:4d} {score:12.5g}  {name}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values."""
        enough = self.first_k()
        found = {
            "question": self.question,
            "asked": self.question if self.asked is None else self.asked,
            "verdict": self.verdict,
            "probability": self.probability,
            "interval": None if self.interval is None else list(self.interval),
            "reason": self.reason,
            "first_k": None if enough is None or enough >= sys.maxsize else enough,
            "ids": self.ids.tolist(),
            "scores": [float(score) for score in self.scores],
        }
        return found if self.names is None else {**found, "names": list(self.names)}
