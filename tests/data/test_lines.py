import pytest

from zoo.collection import captions
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
