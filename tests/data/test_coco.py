"""Layouts of published sets: COCO, Flickr30k, Visual Genome, files of regions."""

import gzip
import json
import re

import numpy as np
import pytest

from halo_search.errors import InputError
from zoo.data import batches, captions, coco, flickr30k, regions, visual_genome
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


def _load_flickr(*args, **options):
    return flickr30k.load(*args, image_size=8, verbose=False, **options).records


def test_two_formats_agree(photos, tmp_path):
    by_name = {
        "a.jpg": {"split": "train", "captions": ["first", "second"]},
        "b.png": {"split": "train", "captions": ["third"]},
        "c.jpg": {"split": "test", "captions": ["fourth"]},
    }
    karpathy = {
        "images": [
            {"filename": name, "split": entry["split"], "imgid": number,
             "sentences": [{"raw": text} for text in entry["captions"]]}
            for number, (name, entry) in enumerate(by_name.items())
        ]
    }  # fmt: skip
    (tmp_path / "dataset_flickr30k.json").write_text(json.dumps(karpathy))
    (tmp_path / "captions.json.gz").write_bytes(gzip.compress(json.dumps(by_name).encode()))
    for name in ("dataset_flickr30k.json", "captions.json.gz"):
        records = _load_flickr(tmp_path / name, photos)
        assert list(records.captions) == ["first", "second", "third"]
        assert list(records.image_ids) == ["a.jpg", "b.png"]
        assert list(records.caption_image) == [0, 0, 1]


def test_bad_files(tmp_path):
    cut = tmp_path / "captions.json.gz"
    cut.write_bytes(gzip.compress(b"{}" * 500)[:-12])
    with pytest.raises(InputError, match=r"captions.json.gz: "):
        _load_flickr(cut)
    whole = tmp_path / "captions.json"
    for content, why in (
        ("{}", "or an object by file name"),
        ('{"a.jpg": {"split": "train"}}', "a.jpg: expected 'split' and a list"),
    ):
        whole.write_text(content)
        with pytest.raises(InputError, match=why):
            _load_flickr(whole)


@pytest.mark.parametrize(("split", "images"), [("train", 29_000), ("val", 1_014), ("test", 1_000)])
def test_the_real_captions(shared_data, split, images):
    path = shared_data / "flickr30k_text" / "flickr30k_karpathy_captions.json.gz"
    records = _load_flickr(path, split=split)
    assert (records.num_images, records.num_captions) == (images, 5 * images)


def _genome():
    def region(number, image, phrase, x=1):
        box = {"x": x, "y": 2, "width": 3, "height": 4}
        return {"region_id": number, "image_id": image, "phrase": phrase, **box}

    return [
        {"regions": [region(10, 1, "a red roof "), region(11, 1, "the sky", x=-5)]},
        {"id": 2, "regions": [region(12, 2, "a tree")]},
    ]


def _load_genome(tmp_path, content, images=None, **options):
    path = tmp_path / "region_descriptions.json"
    path.write_text(json.dumps(content))
    return visual_genome.load(path, images, image_size=8, verbose=False, **options)


@pytest.fixture
def pictures(photos):
    for folder, name, new in (("VG_100K", "a.jpg", "1.jpg"), ("VG_100K_2", "c.jpg", "2.jpg")):
        (photos / folder).mkdir()
        (photos / name).rename(photos / folder / new)
    return photos


def test_phrases_boxes_and_pictures(tmp_path, pictures):
    records, dataset = _load_genome(tmp_path, _genome(), pictures)
    assert list(records.captions) == ["a red roof", "the sky", "a tree"]
    np.testing.assert_array_equal(records.caption_image, [0, 0, 1])
    np.testing.assert_array_equal(records.caption_ids, [10, 11, 12])
    np.testing.assert_array_equal(records.caption_boxes[1], [-5, 2, 3, 4])
    assert [path.split("photos/")[1] for path in records.image_paths] == [
        "VG_100K/1.jpg",
        "VG_100K_2/2.jpg",
    ]
    assert next(iter(dataset.batch(3)))["images"].shape == (3, 8, 8, 3)
    part = records.select([1])
    np.testing.assert_array_equal(part.caption_boxes, [[1, 2, 3, 4]])


@pytest.mark.parametrize(
    ("change", "why", "kind"),
    [
        (lambda c: c[0]["regions"][0].update(width=0), "region 10: expected a width", "bad boxes"),
        (lambda c: c[0]["regions"][1].pop("y"), "expected a region with its box", "bad entries"),
    ],
)
def test_bad_regions_of_a_genome(tmp_path, change, why, kind):
    content = _genome()
    change(content)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        _load_genome(tmp_path, content)
    assert "region_descriptions.json" in str(caught.value)
    records = _load_genome(tmp_path, content, skip_bad=True).records
    assert {item.kind for item in records.skipped} - {"images without captions"} <= {kind}
    assert records.num_captions == len(records.caption_boxes) >= 1


def test_the_real_samples(shared_data):
    path = shared_data / "visual_genome_samples" / "region_descriptions_v1.2_first5images.json"
    records = visual_genome.load(path, verbose=False).records
    assert (records.num_images, records.num_captions) == (5, 1278)
    assert list(records.image_ids) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(records.caption_boxes[0], [421, 57, 82, 139])
    assert "5 images, 1,278 captions" in records.summary()


def _write_regions(folder, split="dev", images=4, copies=1, ids=True, dtype=np.float32):
    folder.mkdir(exist_ok=True)
    array = np.arange(images * 6, dtype=dtype).reshape(images, 3, 2)
    np.save(folder / f"{split}_ims.npy", np.repeat(array, copies, axis=0))
    texts = [f"caption {index}" for index in range(5 * images)]
    (folder / f"{split}_caps.txt").write_text("\n".join(texts) + "\n")
    if ids:
        numbers = np.repeat(np.arange(images) + 70, copies)
        (folder / f"{split}_ids.txt").write_text("".join(f"{number}\n" for number in numbers))
    return array


def _load_regions(folder, split="dev", **options):
    return regions.load(folder, split, verbose=False, **options).records


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_images_are_stored_once_or_five_times(tmp_path, copies, dtype):
    array = _write_regions(tmp_path, copies=copies, dtype=dtype)
    records, dataset = regions.load(tmp_path, "dev", verbose=False)
    np.testing.assert_array_equal(records.caption_image, np.repeat(np.arange(4), 5))
    np.testing.assert_array_equal(records.image_ids, [70, 71, 72, 73])
    rows = list(dataset.as_numpy_iterator())
    assert len(rows) == 20
    for index, row in enumerate(rows):
        np.testing.assert_array_equal(row["images"], array[index // 5])
        assert row["captions"] == f"caption {index}".encode()
        assert row["image_labels"] == row["caption_labels"] == index // 5
    part = records.select([3, 1])
    shown = np.concatenate(list(regions.features(part).in_order(3).as_numpy_iterator()))
    np.testing.assert_array_equal(shown, array[[3, 1]])


def test_training_batches_read_the_map(tmp_path):
    array = _write_regions(tmp_path, copies=5, ids=False)
    records = _load_regions(tmp_path)
    np.testing.assert_array_equal(records.image_ids, range(4))
    tokenizer = captions.word_tokenizer(records.captions)
    dataset = batches.images_with_captions(
        records, tokenizer, regions.features(records), 2, num_steps=4
    )
    for batch in dataset.as_numpy_iterator():
        np.testing.assert_array_equal(batch["images"], array[batch["image_labels"]])
        assert batch["captions"].shape == (10, 32)


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros((4, 6), np.float32), "expected shape (rows, regions, dim), found (4, 6)"),
        (np.zeros((3, 3, 2), np.float32), "expected 3 captions, or 5 times as many"),
    ],
)
def test_bad_arrays(tmp_path, array, why):
    _write_regions(tmp_path)
    np.save(tmp_path / "dev_ims.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        _load_regions(tmp_path)
    assert "dev_" in str(caught.value)


def test_bad_captions_and_ids(tmp_path):
    _write_regions(tmp_path)
    path, ids = tmp_path / "dev_caps.txt", tmp_path / "dev_ids.txt"
    whole = path.read_text().splitlines()
    path.write_text("\n".join([*whole[:2], "  ", *whole[3:]]))
    with pytest.raises(InputError, match=re.escape(f"{path}:3: an empty caption")):
        _load_regions(tmp_path)
    records = _load_regions(tmp_path, skip_bad=True)
    assert [item.kind for item in records.skipped] == ["empty captions"]
    np.testing.assert_array_equal(np.bincount(records.caption_image), [4, 5, 5, 5])
    path.write_text("\n".join(whole))
    ids.write_text("70\n71\n70\n73\n")
    with pytest.raises(InputError, match=re.escape(f"{ids}:3: id 70 occurs twice")):
        _load_regions(tmp_path)
    assert list(_load_regions(tmp_path, skip_bad=True).image_ids) == [70, 71, 73]
    path.write_text("\n".join(whole[:-1]))
    with pytest.raises(InputError, match=re.escape(f"{path}:19: expected 4 captions")):
        _load_regions(tmp_path)


@pytest.mark.parametrize("odd", ["9", 9.0, True, 1 << 63])
def test_an_id_of_another_type_is_told_as_that(tmp_path, odd):
    content = _content()
    content["images"][0]["id"] = odd
    file = _write(tmp_path / "captions.json", content)
    with pytest.raises(InputError, match="expected a whole number of 64 bits as 'id', found"):
        _load(file, None)
    del content["images"][0]["id"]
    file = _write(tmp_path / "captions.json", content)
    with pytest.raises(InputError, match="expected the keys 'id', 'file_name' in"):
        _load(file, None)
