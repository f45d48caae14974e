import json

import numpy as np
import pytest

from zoo.data import coco
from zoo.errors import InputError
from zoo.metrics import read_instance_labels


def _content():
    return {
        "images": [{"id": 7, "file_name": "a.jpg"}, {"id": 9, "file_name": "b.png"}],
        "annotations": [
            {"id": 100, "image_id": 9, "caption": "one"},
            {"id": 101, "image_id": 7, "caption": "two "},
            {"id": 102, "image_id": 9, "caption": "three"},
        ],
    }


def _write(path, content):
    path.write_text(json.dumps(content))
    return path


def _load(*args, **options):
    return coco.load(*args, image_size=8, verbose=False, **options).records


def test_captions_go_to_their_images(photos, tmp_path):
    file = _write(tmp_path / "captions.json", _content())
    records, dataset = coco.load(file, photos, image_size=8, verbose=False)
    assert list(records.captions) == ["two", "one", "three"]
    np.testing.assert_array_equal(records.caption_ids, [101, 100, 102])
    np.testing.assert_array_equal(records.image_ids, [7, 9])
    np.testing.assert_array_equal(records.caption_labels, [0, 1, 1])
    assert next(iter(dataset.batch(3)))["images"].shape == (3, 8, 8, 3)
    assert list(_load(file).image_paths) == ["a.jpg", "b.png"]


def test_images_may_lie_in_the_folder_of_their_split(photos, tmp_path):
    (tmp_path / "images" / "val2014").mkdir(parents=True)
    (photos / "a.jpg").rename(tmp_path / "images" / "val2014" / "COCO_val2014_7.jpg")
    content = _content()
    content["annotations"] = content["annotations"][1:2]
    for name in ("COCO_val2014_7.jpg", "val2014\\COCO_val2014_7.jpg"):  # as Windows writes it
        content["images"] = [{"id": 7, "file_name": name}]
        records = _load(_write(tmp_path / "captions.json", content), tmp_path / "images")
        assert records.image_paths[0].endswith("val2014/COCO_val2014_7.jpg")


def test_ids_choose_captions_and_absent_ones_are_reported(photos, tmp_path):
    file = _write(tmp_path / "captions.json", _content())
    np.save(tmp_path / "ids.npy", [102, 101, 555])
    (tmp_path / "ids.txt").write_text("102\n101\n555\n")
    for ids in ([102, 101, 555], tmp_path / "ids.npy", tmp_path / "ids.txt"):
        records = _load(file, photos, ids=ids)
        np.testing.assert_array_equal(records.caption_ids, [101, 102])
        assert [item.where for item in records.skipped] == ["caption 555"]
    np.save(tmp_path / "ids.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(InputError, match=r"ids\.npy: .*ython objects"):
        _load(file, photos, ids=tmp_path / "ids.npy")


@pytest.mark.parametrize(
    ("change", "why", "kind"),
    [
        (
            lambda c: c["images"][0].update(file_name="../../a.jpg"),
            "leads out",
            "unsafe file names",
        ),
        (
            lambda c: c["annotations"][0].update(caption=" "),
            "caption 1 of image 9 is empty",
            "empty captions",
        ),
    ],
)
def test_bad_entries(photos, tmp_path, change, why, kind):
    content = _content()
    change(content)
    file = _write(tmp_path / "captions.json", content)
    with pytest.raises(InputError, match=why) as caught:
        _load(file, photos)
    assert str(file) in str(caught.value)
    assert [item.kind for item in _load(file, photos, skip_bad=True).skipped] == [kind]


def test_a_file_cut_off_is_named_with_its_line(tmp_path):
    text = json.dumps(_content(), indent=1)
    (tmp_path / "captions.json").write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match=r"captions.json:\d+: this is not valid JSON"):
        _load(tmp_path / "captions.json")
    (tmp_path / "captions.json").write_text("[]")
    with pytest.raises(InputError, match="expected a list 'images'"):
        _load(tmp_path / "captions.json")


def _karpathy():
    def entry(name, split, number):
        sentences = [{"raw": f"{name} {i}", "sentid": 10 * number + i} for i in range(2)]
        return {"filename": name, "split": split, "cocoid": number, "filepath": "val2014",
                "sentences": sentences}  # fmt: skip

    return {"images": [entry("a.jpg", "train", 1), entry("b.png", "restval", 2),
                       entry("c.jpg", "test", 3)]}  # fmt: skip


def test_karpathys_format_and_its_restval(photos, tmp_path):
    file = _write(tmp_path / "dataset_coco.json", _karpathy())
    np.testing.assert_array_equal(_load(file, photos, split="train").image_ids, [1, 2])
    np.testing.assert_array_equal(_load(file, photos, split="restval").image_ids, [2])
    records = _load(file, photos, split="test")
    assert list(records.captions) == ["c.jpg 0", "c.jpg 1"]
    np.testing.assert_array_equal(records.caption_ids, [30, 31])
    with pytest.raises(ValueError, match="`split` must be one of"):
        _load(file, photos, split="dev")
    with pytest.raises(ValueError, match="`split` must be None"):
        _load(_write(tmp_path / "captions.json", _content()), photos, split="test")
    broken = _karpathy()
    broken["images"][2]["split"] = "exam"
    with pytest.raises(InputError, match=r"images\[2\]: unknown split 'exam'"):
        _load(_write(file, broken), photos, split="test")


def test_the_real_subset(shared_data):
    folder = shared_data / "coco_subset"
    records = _load(folder / "captions.json", folder / "images")
    assert (records.num_images, records.num_captions) == (569, 2846)
    instances = json.loads((folder / "instances.json").read_text())["images"]
    shown = np.intersect1d(records.image_ids, [image["id"] for image in instances])
    labels = read_instance_labels(folder / "instances.json", shown)
    assert labels.shape == (341, 80)
    assert labels.any(1).all()
    whole = _load(shared_data / "coco_annotations" / "captions_val2017.json")
    assert (whole.num_images, whole.num_captions) == (5000, 25014)
    ids = shared_data / "coco_annotations" / "coco_test_ids.npy"
    assert _load(folder / "captions.json", folder / "images", ids=ids).num_images == 71
