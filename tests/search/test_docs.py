"""The examples of docs/search.md run as they are printed."""

import re
from pathlib import Path

import numpy as np

import zoo
from zoo.search import Index

PAGE = Path(__file__).parents[2] / "docs" / "search.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, hubs, elsewhere = blocks()
    names = {}
    exec(compile(first, str(PAGE), "exec"), names)
    assert names["scores"].shape == (5, 10)
    assert len(names["index"]) == 1008
    corrected = {}
    exec(compile(hubs, str(PAGE), "exec"), corrected)
    assert corrected["index"].hubs is not None
    exec(compile(elsewhere, str(PAGE), "exec"), names)
    best = np.argsort(names["exact"], axis=1)[:, :10]
    ids = Index.build(names["gallery"], "csd").search(names["queries"], k=10)[1]
    np.testing.assert_array_equal(best, ids)
    distance = zoo.similarities.closed_form_sampled_distance(names["queries"], names["gallery"])
    np.testing.assert_allclose(names["exact"], distance, rtol=1e-4)
