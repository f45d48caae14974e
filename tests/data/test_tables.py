"""Tables as people have them: quotes, separators, names of columns, forms of file names."""

import unicodedata

import pytest
from PIL import Image

from zoo import data
from zoo.data import own_pairs
from zoo.errors import InputError
from zoo.files.tables import read_table


@pytest.fixture
def album(tmp_path):
    """A folder with twelve small pictures."""
    folder = tmp_path / "album"
    folder.mkdir()
    for index in range(12):
        Image.new("RGB", (9, 9), (20 * index, 90, 200)).save(folder / f"{index:02d}.jpg")
    return folder


def _rows(count=12):
    return [(f"{index:02d}.jpg", f"caption {index}") for index in range(count)]


def _write(path, rows, separator="\t", header=("image", "caption")):
    lines = [separator.join(row) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _captions(table, **options):
    return list(own_pairs.load(table, image_size=8, verbose=False, **options).records.captions)


def test_quotes_of_tsv_are_text(album):
    """A caption that starts with a quote and one that ends with one took all between with them."""
    rows = _rows()
    rows[2] = ("02.jpg", '"Look, she said')
    rows[9] = ("09.jpg", 'and that was "all"')
    table = _write(album / "pairs.tsv", rows)
    assert _captions(table) == [caption for _, caption in rows]
    rows[4] = ("04.jpg", '"a whole one"')
    assert _captions(_write(table, rows))[4] == '"a whole one"'


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_a_separator_and_columns_of_ones_own(album, separator):
    table = album / "pairs.csv"
    _write(table, [(b, a) for a, b in _rows()], separator, ("text", "file"))
    with pytest.raises(InputError, match=r"pairs.csv:1: expected a column 'image'.*separator"):
        own_pairs.load_split(album, "train")
    names = {"separator": separator, "image_column": "file", "caption_column": "text"}
    assert _captions(table, **names) == [caption for _, caption in _rows()]
    train = data.open({"loader": "pairs", "root": str(album), "image_size": 8, **names}, "train")
    assert train.records.num_images == 10


@pytest.mark.parametrize("separator", ["", ";;", "\n", '"', "é\n", 5])
def test_a_separator_is_one_character(album, separator):
    table = _write(album / "pairs.csv", _rows(), ",")
    with pytest.raises(InputError, match="`separator` must be one character"):
        _captions(table, separator=separator)


def test_tab_has_a_name(album):
    assert len(_captions(_write(album / "pairs.csv", _rows()), separator="tab")) == 12


@pytest.mark.parametrize(("table_form", "disk_form"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_both_forms_of_a_name_find_its_file(album, table_form, disk_form):
    name = "caf\u00e9/\u00fcber.jpg"
    path = album / unicodedata.normalize(disk_form, name)
    path.parent.mkdir()
    (album / "00.jpg").rename(path)
    rows = [(unicodedata.normalize(table_form, name), "here"), *_rows()[1:]]
    rows.append((unicodedata.normalize(disk_form, name), "once more"))
    records = own_pairs.load(_write(album / "pairs.tsv", rows), image_size=8, verbose=False).records
    assert records.num_images == 12
    assert list(records.captions[:2]) == ["here", "once more"]
    assert records.image_paths[0] == str(path)
    assert sum(s.num_images for s in _splits(album)) == 12


def _splits(root, **options):
    return [own_pairs.load_split(root, name, **options) for name in ("train", "validation", "test")]


def test_mixed_forms_in_one_path(album):
    folder = album / unicodedata.normalize("NFD", "caf\u00e9")
    folder.mkdir()
    (album / "00.jpg").rename(folder / "\u00fcber.jpg")
    assert _captions(_write(album / "pairs.tsv", [("caf\u00e9/\u00fcber.jpg", "here")])) == ["here"]


def test_an_absolute_path_inside_of_the_folder(album, tmp_path, monkeypatch):
    rows = [(str(album / "00.jpg"), "first"), ("00.jpg", "second"), *_rows()[1:]]
    records = own_pairs.load(_write(album / "pairs.tsv", rows), image_size=8, verbose=False).records
    assert records.num_images == 12
    assert list(records.captions[:2]) == ["first", "second"]
    monkeypatch.chdir(tmp_path)
    assert len(_captions("album/pairs.tsv")) == 13
    link = tmp_path / "link"
    link.symlink_to(album)
    assert len(_captions(link / "pairs.tsv")) == 13
    outside = tmp_path / "secret.jpg"
    outside.write_bytes((album / "00.jpg").read_bytes())
    for name in (str(outside), f"{album}/../secret.jpg", "../secret.jpg"):
        with pytest.raises(InputError, match="leads out of the folder"):
            _captions(_write(album / "pairs.tsv", [(name, "out")]))


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match=r"nope: no such folder"):
        own_pairs.load_split(tmp_path / "nope", "train")


def test_a_second_table_is_said(album, capsys):
    _write(album / "pairs.tsv", _rows())
    _write(album / "pairs.csv", _rows(), ",")
    train = own_pairs.load_split(album, "train")
    assert "1 other tables" in capsys.readouterr().out
    assert [item.where for item in train.skipped] == [str(album / "pairs.tsv")]


BROKEN = [
    (b'03.jpg,"never\n', "quote"),
    (b'03.jpg,"a" b\n', "quote"),
    (b"03.jpg,caf\xe9\n", "UTF-8"),
    (b"03.jpg," + b"a" * 140_000 + b"\n", "field"),
]


@pytest.mark.parametrize(("row", "why"), BROKEN)
def test_broken_rows_are_left_out_and_counted(album, capsys, row, why):
    """The rest of the table is read, also after a quote that is never closed."""
    good = [",".join(pair).encode() + b"\n" for pair in _rows()]
    table = album / "pairs.csv"
    table.write_bytes(b"image,caption\n" + b"".join([*good[:3], row, *good[4:]]))
    with pytest.raises(InputError, match=r"pairs.csv:5: "):
        _captions(table)
    records = own_pairs.load(table, image_size=8, skip_bad=True).records
    assert [caption for caption in records.captions] == [
        caption for name, caption in _rows() if name != "03.jpg"
    ]
    (item,) = records.skipped
    assert item.where == f"{table}:5"
    assert why in item.why
    assert "left out: 1 " in capsys.readouterr().out


def test_broken_lines_of_json_are_left_out_and_counted(album):
    lines = [f'{{"image": "{name}", "caption": "{text}"}}'.encode() for name, text in _rows()]
    bad = [b"[" * 100_000, b'{"image": "a.jpg", "caption": "caf\xe9"}', b"1" * 5000, b"{"]
    (album / "pairs.jsonl").write_bytes(b"\n".join([*lines[:2], *bad, *lines[2:]]))
    with pytest.raises(InputError, match=r"pairs.jsonl:(3|4): "):
        _captions(album / "pairs.jsonl")
    records = own_pairs.load(album / "pairs.jsonl", skip_bad=True, verbose=False).records
    assert records.num_captions == 12
    assert sorted(item.where[-2:] for item in records.skipped) == [":3", ":4", ":5", ":6"]


def test_every_row_is_read_or_counted(album):
    """Rows in, captions and what was left out come out: the sum is the same."""
    rows = [
        *_rows(),
        ("00.jpg", ""),
        ("", "no picture"),
        ("00.jpg", "caption 0"),
        ("gone.jpg", "x"),
    ]
    rows += [("01.jpg", "a", "b"), ("../x.jpg", "out")]
    table = _write(album / "pairs.tsv", rows)
    records = own_pairs.load(table, image_size=8, skip_bad=True, verbose=False).records
    assert records.num_captions + len(records.skipped) == len(rows)


def test_line_numbers_of_a_table_with_long_fields(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,y\n1,"a\nb"\n2,c\n')
    assert list(read_table(path, ["y", "x"])) == [(3, ["a\nb", "1"]), (4, ["c", "2"])]


def test_a_space_may_stand_before_a_quote(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('image,caption\na.jpg, "a cat, a dog"\nb.jpg,  a bird\n')
    rows = [values for _, values in read_table(path, ["image", "caption"])]
    assert rows == [["a.jpg", "a cat, a dog"], ["b.jpg", "a bird"]]
