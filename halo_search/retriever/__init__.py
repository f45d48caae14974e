"""Retrieval that says how sure it is: a model, a gallery and a judge in one object."""

from halo_search.confidence.judge import VERDICTS, Judge, Judgement
from halo_search.retriever.answer import Answer
from halo_search.retriever.retriever import Retriever
from halo_search.retriever.training_photos import trained_on, training_note

__all__ = ["VERDICTS", "Answer", "Judge", "Judgement", "Retriever", "trained_on", "training_note"]
