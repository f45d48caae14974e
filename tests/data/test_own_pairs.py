import json
import re

import numpy as np
import pytest

from halo_search.errors import InputError
from pairs import load_pairs
from zoo.data import own_pairs

CSV = 'image,caption\na.jpg,first\nb.png,"second, with a comma"\na.jpg,third\n'


def _lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_csv_and_json_lines_are_read_alike(photos):
    (photos / "pairs.csv").write_text(CSV)
    (photos / "pairs.tsv").write_text("caption\timage\nfirst\ta.jpg\nthird\t./a.jpg\n")
    rows = [{"image": "a.jpg", "caption": ["first", "third"]}, {"image": "b.png", "caption": "x"}]
    _lines(photos / "pairs.jsonl", rows)
    records, dataset = load_pairs(photos / "pairs.csv")
    assert list(records.captions) == ["first", "third", "second, with a comma"]
    assert list(records.image_ids) == ["a.jpg", "b.png"]
    np.testing.assert_array_equal(records.caption_image, [0, 0, 1])
    np.testing.assert_array_equal(records.image_labels, [0, 1])
    batch = next(iter(dataset.batch(3)))
    assert batch["images"].shape == (3, 8, 8, 3)
    np.testing.assert_array_equal(batch["image_labels"], [0, 0, 1])
    assert list(load_pairs(photos / "pairs.tsv").records.captions) == ["first", "third"]
    assert list(load_pairs(photos / "pairs.jsonl").records.captions) == ["first", "third", "x"]


def test_columns_and_folder_can_be_named(photos, tmp_path):
    (tmp_path / "table.csv").write_text("file,text\nc.jpg,hello\n")
    records = load_pairs(tmp_path / "table.csv", photos, ("file", "text")).records
    assert list(records.image_paths) == [str(photos / "c.jpg")]


@pytest.mark.parametrize(
    ("text", "why", "kind"),
    [
        ("image,caption\na.jpg,first\nb.png,  \n", ":3: expected text", "empty captions"),
        ("image,caption\na.jpg,first\n,second\n", ":3: expected a path", "rows without image"),
        (CSV + "../x.jpg,out\n", ":5: '../x.jpg' leads out", "unsafe file names"),
    ],
)
def test_bad_rows(photos, text, why, kind):
    table = photos / "pairs.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=re.escape(f"{table}{why}")):
        load_pairs(table)
    records = load_pairs(table, skip_bad=True).records
    assert [item.kind for item in records.skipped] == [kind]
    assert records.captions[0] == "first"


def test_commas_without_quotes_are_noticed(photos):
    table = photos / "pairs.csv"
    table.write_text("image,caption\na.jpg,first\nb.png,a dog, running\nc.jpg,last\n")
    why = "pairs.csv:3: expected 2 fields, found 3; put a text with ',' in double quotes"
    with pytest.raises(InputError, match=re.escape(why)):
        load_pairs(table)
    records = load_pairs(table, skip_bad=True).records
    assert list(records.captions) == ["first", "last"]
    assert [item.kind for item in records.skipped] == ["rows with too many fields"]
    (photos / "pairs.tsv").write_text("image\tcaption\na.jpg\ta dog, running\nb.png\tx\ty\n")
    with pytest.raises(InputError, match=r"pairs.tsv:3: expected 2 fields, found 3; .* tabs"):
        load_pairs(photos / "pairs.tsv")


def test_duplicate_pairs_are_counted_and_reported(photos, capsys):
    (photos / "pairs.csv").write_text(CSV + "./a.jpg, first \nb.png,first\n")
    records = load_pairs(photos / "pairs.csv").records
    assert list(records.captions) == ["first", "third", "second, with a comma", "first"]
    (skipped,) = records.skipped
    assert skipped.kind == "duplicate pairs"
    assert skipped.where.endswith("pairs.csv:5")
    assert "left out: 1 duplicate pairs" in capsys.readouterr().out


def test_bad_tables(photos, tmp_path):
    (photos / "pairs.csv").write_text("picture,caption\na.jpg,first\n")
    with pytest.raises(InputError, match=r"pairs.csv:1: expected a column 'image'"):
        load_pairs(photos / "pairs.csv")
    (photos / "pairs.csv").write_text("")
    with pytest.raises(InputError, match=r"pairs.csv:1: expected a column 'image', found none"):
        load_pairs(photos / "pairs.csv")
    (photos / "pairs.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"expected a file of one of the kinds"):
        load_pairs(photos / "pairs.xlsx")
    with pytest.raises(InputError, match="no such file or folder"):
        load_pairs(tmp_path / "none.csv")


def test_missing_and_damaged_photos(photos):
    (photos / "pairs.csv").write_text(CSV + "gone.jpg,lost\nc.jpg,broken\n")
    (photos / "c.jpg").write_bytes((photos / "c.jpg").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"c.jpg: a damaged image"):
        load_pairs(photos / "pairs.csv")
    records = load_pairs(photos / "pairs.csv", skip_bad=True).records
    assert sorted(item.kind for item in records.skipped) == ["bad images", "missing photos"]
    (photos / "c.jpg").unlink()
    with pytest.raises(InputError, match=r"pairs.csv:5: no file .*gone.jpg"):
        own_pairs.captioned_folder(photos / "pairs.csv")
    for path in photos.glob("*.[jp]*g"):
        path.unlink()
    with pytest.raises(InputError, match="no image with captions is left"):
        load_pairs(photos / "pairs.csv")


def test_a_table_of_another_encoding_says_so_where_bad_rows_are_left_out(photos):
    table = photos / "pairs.csv"
    rows = ["image,caption", *(f"{name},caf\u00e9 {name}" for name in ("a.jpg", "b.png", "c.jpg"))]
    table.write_bytes("\n".join(rows).encode("cp1252"))
    with pytest.raises(
        InputError, match=r"3 left out, the first: .*:2: expected UTF-8, found byte"
    ):
        own_pairs.load_split(table, "train", skip_bad=True)
