import json

import pytest
from PIL import Image

from halo_search.errors import InputError
from zoo import data
from zoo.data import own_pairs

NAMES = ("1_a.jpg", "2_b.jpg", "3_c.jpg", "4_d.jpg")
CAPTIONS = {name: [f"a photo, number {row}", f'"the" {row}'] for row, name in enumerate(NAMES)}


def _photos(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for row, name in enumerate(NAMES):
        Image.new("RGB", (12, 10), (60 * row, 90, 200)).save(folder / name)


def _kaggle_flickr8k(root):
    _photos(root / "Images")
    rows = [f'{n},"{c.replace(chr(34), chr(34) * 2)}"' for n in NAMES for c in CAPTIONS[n]]
    (root / "captions.txt").write_text("\n".join(["image,caption", *rows]))
    return "Kaggle's Flickr8k, captions.txt, photos in Images"


def _image_folder_csv(root):
    _photos(root)
    rows = [f'{n},"{c.replace(chr(34), chr(34) * 2)}"' for n in NAMES for c in CAPTIONS[n]]
    (root / "metadata.csv").write_text("\n".join(["file_name,text", *rows]))
    return "imagefolder, metadata.csv"


def _image_folder_of_splits(root):
    for split, names in (("train", NAMES[:2]), ("validation", NAMES[2:3]), ("test", NAMES[3:])):
        _photos(root / split)
        rows = [json.dumps({"file_name": n, "caption": CAPTIONS[n]}) for n in names]
        (root / split / "metadata.jsonl").write_text("\n".join(rows))
    return "imagefolder"


def _karpathy(root):
    _photos(root / "Flicker8k_Dataset")
    splits = ("train", "restval", "val", "test")
    images = [
        {"filename": n, "split": s, "imgid": i, "sentences": [{"raw": c} for c in CAPTIONS[n]]}
        for i, (n, s) in enumerate(zip(NAMES, splits, strict=True))
    ]
    content = {"images": images, "dataset": "flickr8k"}
    (root / "dataset_flickr8k.json").write_text(json.dumps(content))
    return "Karpathy's JSON, dataset_flickr8k.json, photos in Flicker8k_Dataset"


def _coco(root):
    (root / "annotations").mkdir()
    for split, names in (("train", NAMES[:3]), ("val", NAMES[3:])):
        _photos(root / f"{split}2017")
        images = [{"id": NAMES.index(n), "file_name": n} for n in names]
        notes = [
            {"id": 10 * image["id"] + i, "image_id": image["id"], "caption": c}
            for image in images
            for i, c in enumerate(CAPTIONS[image["file_name"]])
        ]
        path = root / "annotations" / f"captions_{split}2017.json"
        path.write_text(json.dumps({"images": images, "annotations": notes}))
    return "COCO's captions, annotations/captions_train2017.json"


MAKERS = (_kaggle_flickr8k, _image_folder_csv, _image_folder_of_splits, _karpathy, _coco)
NAMED = ("_image_folder_of_splits", "_karpathy")  # by the data; the others are drawn


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__.strip("_"))
def test_each_layout_is_opened_as_it_is(make, tmp_path, capsys):
    line = make(tmp_path)
    found = data.captioned_folder(tmp_path)
    pairs = {
        (found.photos[row].rpartition("/")[2], caption)
        for row, caption in zip(found.caption_image, found.captions, strict=True)
    }
    assert pairs == {(name, caption) for name in NAMES for caption in CAPTIONS[name]}
    assert found.recognised.startswith(f"{tmp_path}: {line}")
    assert ": 4 photos, 8 captions" in found.recognised
    capsys.readouterr()
    splits = [
        own_pairs.load_split(tmp_path, name, 0.25) for name in ("train", "validation", "test")
    ]
    assert [records.num_images for records in splits] == [2, 1, 1]
    assert capsys.readouterr().out.count(f"{tmp_path}: {line}") == 1
    assert len({one for records in splits for one in records.image_ids}) == 4
    if make.__name__ in NAMED:
        assert splits[2].image_paths[0].endswith(NAMES[3])


def test_the_table_alone_and_photos_elsewhere(tmp_path):
    _kaggle_flickr8k(tmp_path / "album")
    (tmp_path / "album" / "Images").rename(tmp_path / "moved")
    table = tmp_path / "album" / "captions.txt"
    found = data.captioned_folder(table, images=tmp_path / "moved")
    assert found.photos[0] == str(tmp_path / "moved" / NAMES[0])
    opened = data.open(
        {"loader": "pairs", "root": str(table), "images": str(tmp_path / "moved")}, "train"
    )
    assert opened.records.num_images == 2
    with pytest.raises(InputError, match=r"captions\.txt:2: no file .*4 of 4 photos are missing: "):
        data.captioned_folder(table)
    with pytest.raises(InputError, match="nowhere: no such folder of images"):
        data.captioned_folder(table, images=tmp_path / "nowhere")


def test_missing_photos_are_named_the_first_three(tmp_path):
    _kaggle_flickr8k(tmp_path)
    for name in NAMES[:3]:
        (tmp_path / "Images" / name).unlink()
    said = r"3 of 4 photos are missing: 1_a\.jpg, 2_b\.jpg, 3_c\.jpg$"
    with pytest.raises(InputError, match=said):
        data.captioned_folder(tmp_path)
    found = data.captioned_folder(tmp_path, skip_bad=True)
    assert len(found.photos) == 1
    assert found.recognised.endswith(": 1 photos, 2 captions; 3 rows or photos left out")


def test_an_unknown_layout_is_one_sentence_that_lists_the_known(tmp_path):
    _photos(tmp_path)
    (tmp_path / "notes.md").write_text("photos")
    with pytest.raises(InputError) as caught:
        data.captioned_folder(tmp_path)
    said = str(caught.value)
    assert "\n" not in said
    for name in ("pairs.csv", "metadata.csv", "captions.txt"):
        assert name in said
    assert "dataset_*.json" in said
    assert "captions_*.json" in said
    with pytest.raises(InputError, match="nowhere: no such file or folder"):
        data.captioned_folder(tmp_path / "nowhere")
