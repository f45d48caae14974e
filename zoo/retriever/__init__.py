"""Retrieval that says how sure it is: a model, a gallery and a judge in one object."""

from typing import TYPE_CHECKING

from zoo.former import lookup

if TYPE_CHECKING:
    from zoo.confidence.judge import VERDICTS, Judge, Judgement
    from zoo.retriever.answer import Answer
    from zoo.retriever.retriever import Retriever
    from zoo.retriever.training_photos import trained_on, training_note

__all__ = [
    "VERDICTS",
    "Answer",
    "Judge",
    "Judgement",
    "Retriever",
    "trained_on",
    "training_note",
]

_WHERE = {  # imported at first use (PEP 562): a search box answers without Keras
    **dict.fromkeys(("VERDICTS", "Judge", "Judgement"), "zoo.confidence.judge"),
    **dict.fromkeys(("trained_on", "training_note"), "zoo.retriever.training_photos"),
    "Answer": "zoo.retriever.answer",
    "Retriever": "zoo.retriever.retriever",
}


__getattr__ = lookup(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted(__all__)
