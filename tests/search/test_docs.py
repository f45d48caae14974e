"""The examples of docs/search.md run as they are printed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "search.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, expanded, milvus = blocks()
    names = {}
    exec(compile(first, str(PAGE), "exec"), names)
    assert names["scores"].shape == (5, 10)
    assert len(names["index"]) == 1008
    again = {}
    exec(compile(expanded, str(PAGE), "exec"), again)
    assert again["scores"].shape == (3, 5)
    assert len(again["index"]) == 200
    pytest.importorskip("pymilvus", reason="the Milvus example needs halo-zoo[milvus]")
    exec(compile(milvus, str(PAGE), "exec"), names)
    names["client"].close()
