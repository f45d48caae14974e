import numpy as np
import pytest
from PIL import Image

from halo_search.collection import pictures
from halo_search.errors import InputError
from pairs import load_pairs
from zoo.data import own_pairs


@pytest.fixture
def album(tmp_path):
    folder = tmp_path / "album"
    folder.mkdir()
    for index in range(20):
        Image.new("RGB", (20, 16), (10 * index, 90, 200)).save(folder / f"{index:02d}.jpg")
    return folder


def _splits(root, **options):
    names = ("train", "validation", "test")
    return {name: own_pairs.load_split(root, name, **options) for name in names}


def _table(folder, splits=None, name="pairs.csv"):
    head = "image,caption" + (",split" if splits else "")
    rows = [f"{i:02d}.jpg,photo {i}" + (f",{splits[i]}" if splits else "") for i in range(20)]
    (folder / name).write_text("\n".join([head, *rows]))


def test_a_share_is_held_out_and_nothing_is_in_two_splits(album):
    _table(album)
    splits = _splits(album, held_out_share=0.2, seed=1)
    assert [records.num_images for records in splits.values()] == [12, 4, 4]
    ids = np.concatenate([records.image_ids for records in splits.values()])
    assert len(set(ids)) == 20
    again = own_pairs.load_split(album, "test", held_out_share=0.2, seed=1)
    assert list(again.image_ids) == list(splits["test"].image_ids)
    with pytest.raises(InputError, match="`held_out_share` must be in"):
        own_pairs.load_split(album, "test", held_out_share=0.5)


def test_a_column_says_which_split(album):
    named = ["train"] * 12 + ["val"] * 5 + ["test"] * 3
    _table(album, named)
    splits = _splits(album)
    assert [records.num_images for records in splits.values()] == [12, 5, 3]
    _table(album, ["train"] * 17 + ["test"] * 3)  # validation is drawn out of training
    splits = _splits(album)
    assert [records.num_images for records in splits.values()] == [15, 2, 3]
    assert list(splits["test"].image_ids) == ["17.jpg", "18.jpg", "19.jpg"]
    _table(album, ["train"] * 19 + ["holdout"])
    with pytest.raises(InputError, match=r"pairs.csv:21: expected a split of train, .*'holdout'"):
        own_pairs.load_split(album, "train")


def test_a_text_file_beside_each_picture(album, capsys):
    for index in range(18):
        (album / f"{index:02d}.txt").write_text(f"photo {index}\n\nnumber {index}\n")
    (album / "gone.txt").write_text("of no photo\n")
    train = own_pairs.load_split(album, "train")
    assert train.num_images == 16
    assert train.num_captions == 32
    assert "left out: 2 photos without a text file, 1 text files without a photo" in (
        capsys.readouterr().out
    )
    (album / "03.txt").write_text("\n")
    with pytest.raises(InputError, match=r"03.txt: expected text"):
        own_pairs.load_split(album, "train")


def test_paths_of_windows_are_paths(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (9, 9), (1, 2, 3)).save(tmp_path / "photos" / "a.png")
    (tmp_path / "pairs.csv").write_text("image,caption\nphotos\\a.png,a photo\n")
    records = load_pairs(tmp_path / "pairs.csv").records
    assert list(records.image_ids) == ["photos/a.png"]
    found = pictures(tmp_path / "pairs.csv")
    assert found.names == ["photos/a.png"]
    assert found.values == [str(tmp_path / "photos" / "a.png")]


@pytest.mark.parametrize(
    ("cell", "captions"),
    [
        ("\"['a dog', 'a cat']\"", ["a dog", "a cat"]),
        ('"[""a dog"", ""a cat""]"', ["a dog", "a cat"]),
        ("[a dog]", ["[a dog]"]),
        ("nan", None),
        ("NULL", None),
    ],
)
def test_cells_that_pandas_writes(tmp_path, cell, captions):
    Image.new("RGB", (9, 9), (1, 2, 3)).save(tmp_path / "a.png")
    (tmp_path / "pairs.csv").write_text(f"image,caption\na.png,{cell}\n")
    if captions is None:
        with pytest.raises(InputError, match=r"pairs\.csv:2: expected text as 'caption'"):
            load_pairs(tmp_path / "pairs.csv")
    else:
        records = load_pairs(tmp_path / "pairs.csv").records
        assert list(records.captions) == captions
