"""Items that answer questions that have nothing in common: planted ones, or a model's hubs."""

import dataclasses
from typing import Any

import numpy as np

from halo_search.embeddings import EmbeddingLike
from halo_search.embeddings.arrays import as_arrays, length, thinned

FIRST = 10  # answers that are looked at, fewer in a small gallery
LEAST = 40  # items of a gallery, below which every item is often among the first ones
SHARE = 0.2  # of the questions, and as many times as by chance:
TIMES = 8
QUESTIONS = 1000  # of a bank, at most
FEW, MUCH = 0.03, 1 / 3  # shares: of the items, and of the questions that these take


@dataclasses.dataclass(frozen=True)
class Hub:
    """An item that is among the `first` answers of an implausible `share` of questions, by its
    `id`.

    ```python
    print(halo_search.index.Hub(7, 0.45, 10))  # item 7 is among the first 10 of 45% of questions
    ```
    """

    id: int
    share: float
    first: int

    def __str__(self) -> str:
        return f"item {self.id} is among the first {self.first} of {self.share:.0%} of questions"


def hubs(index: Any, questions: EmbeddingLike) -> list[Hub]:
    """The items of an index that are among the first answers of implausibly many questions.

    An item near the mean of all questions answers every one of them, whether it was planted there
    or the model put it there. It is named if at least a fifth of the questions, and eight times as
    many as by chance, have it among their first ten answers (fewer in galleries of under 200).

    ```python
    rng = np.random.default_rng(0)
    photos, questions = rng.normal(size=(2, 200, 16)) + 1.0
    photos[7] = 3.0  # near all questions
    index = halo_search.index.Index.build({"mean": photos}, "cosine")
    halo_search.index.hubs(index, {"mean": questions})  # item 7
    ```

    Args:
        index: a `halo_search.index.Index`.
        questions: embeddings of some 100 different questions, such as the captions of a model's
            probes; of more than `QUESTIONS` a part is asked.

    Returns:
        `Hub`s, the worst first; none of a gallery of less than `LEAST` items.

    Raises:
        ValueError: if the questions do not fit the index.

    Reference: Radovanović et al., "Hubs in Space", JMLR 2010.
    """
    if len(index) < LEAST:
        return []
    bank = thinned(as_arrays(questions, "questions"), QUESTIONS)
    first = min(FIRST, len(index) // 20)
    answers = index.search(bank, first)[1]
    ids, counts = np.unique(answers[answers >= 0], return_counts=True)
    shares = counts / length(bank)
    least = max(SHARE, TIMES * first / len(index))
    order = np.lexsort((ids, -shares))
    return [Hub(int(ids[n]), float(shares[n]), first) for n in order if shares[n] >= least]


def taken_by_few(index: Any, questions: EmbeddingLike) -> tuple[int, float] | None:
    """`(few, share)` where 3 % of the items are the first answers of more than a third of the
    questions, else None: many planted rows share what one hub would take."""
    if len(index) < LEAST:
        return None
    bank = thinned(as_arrays(questions, "questions"), QUESTIONS)
    first = index.search(bank, 1)[1]
    counts = np.sort(np.unique(first[first >= 0], return_counts=True)[1])[::-1]
    few = max(1, round(FEW * len(index)))
    share = float(counts[:few].sum() / length(bank))
    return (few, share) if share > MUCH else None
