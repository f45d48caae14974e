"""Every public class and builder has an example in its docstring; those that need nothing run."""

import importlib
import inspect
import re
import textwrap

import keras
import numpy as np
import pytest

import halo_search
import zoo

ROOMS = (
    "halo_search.collection",
    "halo_search.confidence",
    "halo_search.index",
    "halo_search.retriever",
    "halo_search.towers",
    "zoo.data",
    "zoo.encoders",
    "zoo.evaluation",
    "zoo.layers",
    "zoo.losses",
    "zoo.metrics",
    "zoo.models",
    "zoo.plots",
    "zoo.similarities",
    "zoo.training",
)
# Their examples need data, files or a model, or build one, which the matrix does.
NOT_RUN = {
    "zoo.data": {"BertTokenizer", "Captioned", "ClipTokenizer", "Loaded", "Split", "Stream"},
    "zoo.evaluation": {"Answers", "EncodedSplit"},
    "zoo.plots": {"write_report"},  # tests/plots/test_report.py
    "zoo.training": {
        "BestEpoch",
        "FiniteCheck",
        "HistoryFile",
        "LayerwiseAdamP",
        "Phase",
        "Resume",
        "RetrievalSettings",
        "Run",
        "Validation",
    },
    "zoo.losses": {"AuxiliaryRanking"},
    "zoo.models": None,
    "halo_search.confidence": {"Confidence"},
    "halo_search.retriever": {"Answer"},
}
# What rooms hand to each other; `Index` and `Retriever` make them, users need not.
PASSED_ON = {
    "halo_search.confidence": {"GalleryIdentity", "GalleryMoments", "KnownQueries", "QueryScores"},
    "halo_search.retriever": {"Judge", "Judgement"},
}


def public(room):
    """`(name, object)` of the classes of a room, and of the functions of `zoo.models`."""
    module = importlib.import_module(room)
    package = room.partition(".")[0]
    for name in module.__all__:
        thing = getattr(module, name)
        is_builder = room == "zoo.models" and inspect.isfunction(thing)
        is_own = inspect.isclass(thing) and thing.__module__.startswith(f"{package}.")
        if (is_own or is_builder) and name not in PASSED_ON.get(room, ()):
            yield name, thing


THINGS = [(room, name, thing) for room in ROOMS for name, thing in public(room)]
RUN = [
    (name, thing)
    for room, name, thing in THINGS
    if NOT_RUN.get(room, ()) is not None and name not in NOT_RUN.get(room, ())
]


def examples(thing):
    return re.findall(r"```python\n(.*?)```", thing.__doc__ or "", re.DOTALL)


def test_every_public_class_and_builder_has_an_example():
    assert len(THINGS) > 100
    lacking = [f"{room}.{name}" for room, name, thing in THINGS if not examples(thing)]
    assert not lacking


@pytest.mark.parametrize("thing", [thing for _, thing in RUN], ids=[name for name, _ in RUN])
def test_an_example_runs(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in examples(thing):
        names = {"halo_search": halo_search, "zoo": zoo, "keras": keras, "np": np}
        exec(textwrap.dedent(code), names)
