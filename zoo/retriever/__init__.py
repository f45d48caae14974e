"""Retrieval that says how sure it is: a model, a gallery and a judge in one object."""

from zoo.confidence.judge import VERDICTS, Judge, Judgement
from zoo.errors import lookup
from zoo.retriever.answer import Answer
from zoo.retriever.parts import trained_on, training_note
from zoo.retriever.retriever import Retriever

__all__ = ["VERDICTS", "Answer", "Judge", "Judgement", "Retriever", "trained_on", "training_note"]

__getattr__ = lookup(__name__)  # names of earlier versions
