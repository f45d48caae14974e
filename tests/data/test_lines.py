"""Lines end at the same places in every text file, table and flag."""

import ast
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from zoo.collection import captions
from zoo.data.loaders.own_rows import read_rows
from zoo.data.text.bert_tokenizer import read_bert_tokenizer
from zoo.errors import InputError
from zoo.files.tables import read_table
from zoo.files.text_files import lines_of, read_lines, read_text
from zoo.files.vector_files import read_column
from zoo.metrics.annotations import read_ids
from zoo.retriever import query

ROOT = Path(__file__).parents[2]
ODD = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e"  # `str.splitlines` ends lines at each
TEXTS = [*(f"a{one}b" for one in ODD), "a cat"]
ENDS = ["\n", "\r\n", "\r"]


@pytest.mark.parametrize("end", ENDS)
def test_only_line_ends_end_lines(end):
    whole = end.join(TEXTS)
    assert lines_of(whole) == lines_of(whole + end) == TEXTS
    assert lines_of("") == []
    assert lines_of(end) == [""]


def _asked(monkeypatch, path):
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stream)
    return list(query._lines("-"))


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
def test_standard_input_is_read_as_a_file_is(end, tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_bytes(("\ufeff" + end.join(TEXTS)).encode())
    assert _asked(monkeypatch, path) == list(query._lines(str(path))) == TEXTS
    path.write_bytes(b"a cat\n\xff")
    with pytest.raises(InputError, match="--queries -: expected UTF-8"):
        _asked(monkeypatch, path)
    path.write_bytes(b"a cat\n\na dog\n")
    with pytest.raises(InputError, match=":2: expected a question, found none"):
        _asked(monkeypatch, path)


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


def test_a_vocabulary_may_hold_them(tmp_path):
    path = tmp_path / "vocab.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a\u2028b", "cat"]
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    assert list(read_bert_tokenizer(path).vocabulary)[5:] == ["a\u2028b", "cat"]


def test_the_line_of_a_bad_byte(tmp_path):
    path = tmp_path / "texts.txt"
    for end in (b"\n", b"\r\n", b"\r"):
        path.write_bytes(b"one" + end + b"two" + end + b"\xff")
        with pytest.raises(InputError, match=r"texts.txt:3: expected UTF-8"):
            read_text(path)


def test_ids(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_bytes(b"3\r5\r\n7\n")
    np.testing.assert_array_equal(read_ids(path), [3, 5, 7])


def test_nothing_else_splits_texts_into_lines():
    """Bytes end their lines as files do; an error's first line is no file's."""
    found = []
    for part in ("zoo", "demo", "export", "recipes"):
        for path in (ROOT / part).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr == "splitlines":
                    said = ast.unparse(node.value)
                    if "bytes" not in said and "data" not in said and "str(error)" not in said:
                        found.append(f"{path.relative_to(ROOT)}: {said}")
    assert found == []
