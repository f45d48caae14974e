import json
import re

import numpy as np
import pytest

from zoo.data import visual_genome
from zoo.errors import InputError


def _content():
    def region(number, image, phrase, x=1):
        box = {"x": x, "y": 2, "width": 3, "height": 4}
        return {"region_id": number, "image_id": image, "phrase": phrase, **box}

    return [
        {"regions": [region(10, 1, "a red roof "), region(11, 1, "the sky", x=-5)]},
        {"id": 2, "regions": [region(12, 2, "a tree")]},
    ]


def _load(tmp_path, content, images=None, **options):
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
    records, dataset = _load(tmp_path, _content(), pictures)
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
def test_bad_entries(tmp_path, change, why, kind):
    content = _content()
    change(content)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        _load(tmp_path, content)
    assert "region_descriptions.json" in str(caught.value)
    records = _load(tmp_path, content, skip_bad=True).records
    assert {item.kind for item in records.skipped} - {"images without captions"} <= {kind}
    assert records.num_captions == len(records.caption_boxes) >= 1


def test_the_real_samples(shared_data):
    path = shared_data / "visual_genome_samples" / "region_descriptions_v1.2_first5images.json"
    records = visual_genome.load(path, verbose=False).records
    assert (records.num_images, records.num_captions) == (5, 1278)
    assert list(records.image_ids) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(records.caption_boxes[0], [421, 57, 82, 139])
    assert "5 images, 1,278 captions" in records.summary()
