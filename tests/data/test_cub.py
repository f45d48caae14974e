import shutil
import tarfile

import numpy as np
import pytest

from zoo.data import cub
from zoo.data.loaders.cub import read_numbered, read_split
from zoo.data.records import Problems


def _load(root, split="trainval", **options):
    return cub.load(root, split=split, image_size=32, verbose=False, **options).records


def test_splits_are_disjoint_and_complete(toy_root):
    ids = {split: set(_load(toy_root, split).image_ids) for split in cub.SPLITS}
    assert ids["trainval"] | ids["seen_test"] | ids["test"] == set(range(1, 61))
    assert len(ids["trainval"]) + len(ids["seen_test"]) + len(ids["test"]) == 60
    for fold in (1, 2, 3):
        assert ids[f"train{fold}"] <= ids["trainval"]
        assert ids[f"val{fold}"] <= ids["trainval"] | ids["seen_test"]
        assert not ids[f"train{fold}"] & ids[f"val{fold}"]


def test_records_hold_what_the_files_say(toy_root):
    records = _load(toy_root, "test")
    assert (records.num_images, records.num_captions, records.num_classes) == (15, 150, 3)
    for image, (path, label) in enumerate(
        zip(records.image_paths, records.image_labels, strict=True)
    ):
        assert records.class_names[label] in path
        text = path.replace("/images/", "/text_c10/").replace(".jpg", ".txt")
        with open(text) as file:
            own = records.captions[records.caption_image == image]
            assert list(own) == file.read().splitlines()
    np.testing.assert_array_equal(
        records.caption_labels, records.image_labels[records.caption_image]
    )


def test_dataset_yields_pairs(toy_root, capsys):
    records, dataset = cub.load(toy_root, split="test", image_size=24)
    assert capsys.readouterr().out == "birds test: 15 images, 150 captions, 3 classes\n"
    assert dataset.cardinality() == 150
    batch = next(iter(dataset.batch(4)))
    assert batch["images"].shape == (4, 24, 24, 3)
    assert batch["images"].dtype == "float32"
    assert 1.0 < np.max(batch["images"]) <= 255.0
    assert batch["captions"].numpy()[1].decode() == records.captions[1]
    np.testing.assert_array_equal(batch["image_labels"], batch["caption_labels"])


def test_captions_from_an_archive_are_those_of_the_folder(toy_copy):
    folder = _load(toy_copy)
    with tarfile.open(toy_copy / "text_c10.tar.gz", "w:gz") as archive:
        archive.add(toy_copy / "text_c10", "text_c10")
    moved = shutil.move(toy_copy / "text_c10", toy_copy.parent / "elsewhere")
    for captions in (None, toy_copy / "text_c10.tar.gz", moved):
        again = _load(toy_copy, captions=captions)
        assert list(again.captions) == list(folder.captions)


def test_a_partial_set_goes_on_and_says_so(toy_copy, capsys):
    gone = sorted((toy_copy / "images").iterdir())[0]
    kept = sorted((toy_copy / "images").iterdir())[1]
    whole = {split: _load(toy_copy, split) for split in ("trainval", "test")}
    split = (
        "test"
        if gone.name in (toy_copy / "splits_pcme_xian/testclasses.txt").read_text()
        else "trainval"
    )
    shutil.rmtree(gone)
    records = cub.load(toy_copy, split=split, image_size=32).records
    lost = whole[split].num_images - records.num_images
    assert lost > 0
    kinds = [item.kind for item in records.skipped]
    assert kinds.count("missing classes") == 1
    assert kinds.count("missing photos") == lost
    assert f"left out: 1 missing classes, {lost} missing photos" in capsys.readouterr().out
    next(kept.iterdir()).unlink()
    everything = [_load(toy_copy, name) for name in ("trainval", "test", "seen_test")]
    assert sum(records.num_images for records in everything) == 54


def test_a_name_that_is_too_long_is_a_missing_photo(toy_copy):
    listed = toy_copy / "images.txt"
    name = listed.read_text().split()[1]
    listed.write_text(listed.read_text().replace(name, f"{name}{'x' * 300}"))
    everything = [_load(toy_copy, split) for split in ("trainval", "test", "seen_test")]
    (skipped,) = [item for records in everything for item in records.skipped]
    assert skipped.kind == "missing photos"


# What ../shared/data holds: 94 of the 150 and 33 of the 50 classes.
REAL = {"trainval": (4408, 94, 56, 16), "test": (1967, 33, 17, 12), "seen_test": (1081, 94, 56, 7)}


@pytest.mark.parametrize(
    "split", ["test", *(pytest.param(n, marks=pytest.mark.very_slow) for n in REAL if n != "test")]
)
def test_the_real_set(shared_data, split):
    images, classes, missing, recoded = REAL[split]
    records = cub.load(shared_data / "CUB_200_2011_crops", split=split, verbose=False).records
    assert (records.num_images, records.num_captions) == (images, 10 * images)
    assert records.num_classes == classes
    assert len(records.class_names) == 200
    assert sum(item.kind == "missing classes" for item in records.skipped) == missing
    assert len(records.recoded) == recoded
    assert not any("\ufffd" in caption for caption in records.captions)


def test_the_zoos_own_copy_of_the_division_is_the_published_one(shared_data, tmp_path):
    root = shared_data / "CUB_200_2011_crops"
    names = tuple(name for _, name in read_numbered(root / "classes.txt").values())
    labels = {name: label for label, name in enumerate(names)}
    images = {
        number: (path, labels[path.split("/")[0]])
        for number, (_, path) in read_numbered(root / "images.txt").items()
    }
    for split in cub.SPLITS:
        theirs, in_theirs = read_split(root, split, names, images, Problems())
        ours, in_ours = read_split(tmp_path, split, names, images, Problems())
        assert ours == theirs
        assert [in_ours(number) for number in images] == [in_theirs(number) for number in images]
