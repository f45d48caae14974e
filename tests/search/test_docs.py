"""The examples of docs/search.md run as they are printed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "search.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, hubs = blocks()
    names = {}
    exec(compile(first, str(PAGE), "exec"), names)
    assert names["scores"].shape == (5, 10)
    assert len(names["index"]) == 1008
    corrected = {}
    exec(compile(hubs, str(PAGE), "exec"), corrected)
    assert corrected["index"].hubs is not None
