import json

import pytest

from zoo.collection import captions
from zoo.data.loaders.own_rows import read_rows
from zoo.files.tables import read_table
from zoo.files.text_files import read_lines
from zoo.files.vector_files import read_column
from zoo.retriever import query

ODD = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e"  # `str.splitlines` ends lines at each
TEXTS = [*(f"a{one}b" for one in ODD), "a cat"]
ENDS = ["\n", "\r\n", "\r"]


READERS = {
    "lines": read_lines,
    "captions": lambda path: captions(path).values,
    "column": read_column,
    "--queries FILE": lambda path: list(query._lines(str(path))),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("reader", READERS)
def test_text_files(reader, end, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(("\ufeff" + end.join(TEXTS) + end).encode())
    assert list(READERS[reader](path)) == TEXTS


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_tables(suffix, end, tmp_path):
    path = tmp_path / f"pairs{suffix}"
    separator = {".csv": ",", ".tsv": "\t"}.get(suffix)
    rows = [f"a.jpg{separator}{text}" for text in TEXTS]
    lines = [f"image{separator}caption", *rows]
    if separator is None:
        lines = [json.dumps({"image": "a.jpg", "caption": t}, ensure_ascii=False) for t in TEXTS]
    path.write_bytes((end.join(lines) + end).encode())
    found = [
        caption
        for row in read_rows(path, ("image", "caption", "split"), None)
        for caption in row.captions
    ]
    assert found == TEXTS
    if separator is not None:
        assert [row[0] for _, row in read_table(path, ["caption"])] == TEXTS
