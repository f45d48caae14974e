"""Every public class and builder has an example in its docstring; those that need nothing run."""

import importlib
import inspect
import re
import textwrap

import keras
import numpy as np
import pytest

import zoo

ROOMS = (
    "collection",
    "confidence",
    "data",
    "encoders",
    "evaluation",
    "files",
    "layers",
    "losses",
    "metrics",
    "models",
    "plots",
    "search",
    "similarities",
    "training",
)
# Their examples need data, files or a model, or build one, which the matrix does.
NOT_RUN = {
    "data": {"BertTokenizer", "Captioned", "ClipTokenizer", "Loaded", "Split", "Stream"},
    "confidence": {"Confidence"},
    "evaluation": {"Answers", "EncodedSplit"},
    "files": {"RunFolder"},
    "plots": {"write_report"},  # tests/plots/test_report.py
    "training": {
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
    "losses": {"AuxiliaryRanking"},
    "models": None,
}


def public(room):
    """`(name, object)` of the classes of a room, and of the functions of `zoo.models`."""
    module = importlib.import_module(f"zoo.{room}")
    for name in module.__all__:
        thing = getattr(module, name)
        is_builder = room == "models" and inspect.isfunction(thing)
        if (inspect.isclass(thing) and thing.__module__.startswith("zoo.")) or is_builder:
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
    lacking = [f"zoo.{room}.{name}" for room, name, thing in THINGS if not examples(thing)]
    assert not lacking


@pytest.mark.parametrize("thing", [thing for _, thing in RUN], ids=[name for name, _ in RUN])
def test_an_example_runs(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in examples(thing):
        exec(textwrap.dedent(code), {"zoo": zoo, "keras": keras, "np": np})
