import unicodedata

import pytest
from PIL import Image

from halo_search.errors import InputError
from pairs import load_pairs
from zoo import data
from zoo.data import own_pairs


@pytest.fixture
def album(tmp_path):
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
    return list(load_pairs(table, **options).records.captions)


def test_quotes_of_tsv_are_text(album):
    rows = _rows()
    rows[2] = ("02.jpg", '"Look, she said')
    rows[9] = ("09.jpg", 'and that was "all"')
    table = _write(album / "pairs.tsv", rows)
    assert _captions(table) == [caption for _, caption in rows]
    rows[4] = ("04.jpg", '"a whole one"')
    assert _captions(_write(table, rows))[4] == '"a whole one"'


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_separator_and_columns_of_ones_own(album, separator):
    table = album / "pairs.csv"
    _write(table, [(b, a) for a, b in _rows()], separator, ("text", "file"))
    with pytest.raises(InputError, match=r"pairs.csv:1: expected a column 'image'.*separator"):
        own_pairs.load_split(album, "train")
    names = {"separator": separator, "image_column": "file", "caption_column": "text"}
    found = _captions(table, columns=("file", "text"), separator=separator)
    assert found == [caption for _, caption in _rows()]
    train = data.open({"loader": "pairs", "root": str(album), "image_size": 8, **names}, "train")
    assert train.records.num_images == 10


@pytest.mark.parametrize(("table_form", "disk_form"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_both_forms_of_a_name_find_its_file(album, table_form, disk_form):
    name = "caf\u00e9/\u00fcber.jpg"
    path = album / unicodedata.normalize(disk_form, name)
    path.parent.mkdir()
    (album / "00.jpg").rename(path)
    rows = [(unicodedata.normalize(table_form, name), "here"), *_rows()[1:]]
    rows.append((unicodedata.normalize(disk_form, name), "once more"))
    records = load_pairs(_write(album / "pairs.tsv", rows)).records
    assert records.num_images == 12
    assert list(records.captions[:2]) == ["here", "once more"]
    assert records.image_paths[0] == str(path)
    assert sum(s.num_images for s in _splits(album)) == 12


def _splits(root, **options):
    return [own_pairs.load_split(root, name, **options) for name in ("train", "validation", "test")]


BROKEN = [
    (b'03.jpg,"never\n', "quote"),
    (b"03.jpg,caf\xe9\n", "UTF-8"),
]


@pytest.mark.parametrize(("row", "why"), BROKEN)
def test_broken_rows_are_left_out_and_counted(album, capsys, row, why):
    good = [",".join(pair).encode() + b"\n" for pair in _rows()]
    table = album / "pairs.csv"
    table.write_bytes(b"image,caption\n" + b"".join([*good[:3], row, *good[4:]]))
    with pytest.raises(InputError, match=r"pairs.csv:5: "):
        _captions(table)
    records = load_pairs(table, skip_bad=True).records
    assert [caption for caption in records.captions] == [
        caption for name, caption in _rows() if name != "03.jpg"
    ]
    (item,) = records.skipped
    assert item.where == f"{table}:5"
    assert why in item.why
    assert "left out: 1 " in capsys.readouterr().out
