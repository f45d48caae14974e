"""Pictures in class folders."""

import re

import numpy as np
import pytest
from PIL import Image

from zoo.data import batches, class_folders, sources
from zoo.errors import InputError


@pytest.fixture
def folders(tmp_path):
    root = tmp_path / "imagenet"
    for name, count in (("n02", 2), ("n01", 1), ("great_owl", 1)):
        (root / name).mkdir(parents=True)
        for number in range(count):
            colour = (40 * count, 0, 200 * number)
            Image.new("RGB", (9, 7), colour).save(root / name / f"{number}.PNG")
    (root / "readme.txt").write_text("not a class")
    (root / "n01" / "notes.txt").write_text("not a picture")
    return root


def _load(root, **options):
    return class_folders.load(root, image_size=8, verbose=False, **options)


def test_labels_follow_the_folders(folders):
    records, dataset = _load(folders)
    assert records.class_names == ("great owl", "n01", "n02")
    assert list(records.image_ids) == ["great_owl/0.PNG", "n01/0.PNG", "n02/0.PNG", "n02/1.PNG"]
    np.testing.assert_array_equal(records.image_labels, [0, 1, 2, 2])
    assert records.num_captions == 0
    rows = list(dataset.as_numpy_iterator())
    np.testing.assert_array_equal([row["image_labels"] for row in rows], [0, 1, 2, 2])
    np.testing.assert_array_equal(rows[3]["images"][0, 0], [80, 0, 200])
    batch = next(iter(batches.image_batches(records, sources.Pictures(records, 8), 3)))
    assert batch["images"].shape == (3, 8, 8, 3)


def test_names_from_a_file(folders, tmp_path):
    table = tmp_path / "names.txt"
    table.write_text("n01 tench, Tinca tinca\nn02 goldfish\ngreat_owl owl\nn03 shark\n")
    records = _load(folders, class_names=table).records
    assert records.class_names == ("owl", "tench", "goldfish")
    table.write_text("n01 tench\nn02\n")
    with pytest.raises(InputError, match=re.escape(f"{table}:2: expected 'FOLDER name'")):
        _load(folders, class_names=table)
    table.write_text("n01 tench\nn02 goldfish\n")
    with pytest.raises(InputError, match=r"great_owl: a class that .*names.txt does not list"):
        _load(folders, class_names=table)
    records = _load(folders, class_names=table, skip_bad=True).records
    assert records.class_names == ("tench", "goldfish")
    np.testing.assert_array_equal(records.image_labels, [0, 1, 1])


def test_bad_pictures_and_empty_classes(folders, tmp_path):
    (folders / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no picture in it"):
        _load(folders)
    (folders / "n02" / "0.PNG").write_bytes(b"")
    records = _load(folders, skip_bad=True).records
    assert sorted(item.kind for item in records.skipped) == ["bad images", "classes without images"]
    np.testing.assert_array_equal(records.image_labels, [0, 1, 2])
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="no picture in a class folder is left"):
        _load(tmp_path / "nothing")
