"""The COCO table on the published annotations, with stand-in features of the right ids."""

import json

import numpy as np
import pytest

from zoo.data import regions
from zoo.metrics import (
    check_coco_ids,
    read_ids,
)

DIM = 16


@pytest.fixture(scope="module")
def published(shared_data):
    annotations, eccv = shared_data / "coco_annotations", shared_data / "eccv_caption"
    if not annotations.is_dir() or not eccv.is_dir():
        pytest.skip("the annotations of COCO or of ECCV Caption are not beside this checkout")
    entries = json.loads((annotations / "coco_karpathy_test_raw.json").read_text())
    images = np.array([int(entry["image"][-16:-4]) for entry in entries])
    assert len(images) == 5000
    counts = [len(entry["caption"]) for entry in entries]
    assert (sum(counts), counts.count(6)) == (25_009, 9)
    # The first five are those of the benchmark, in its order; a sixth has an id of its own.
    test_ids = iter(read_ids(eccv / "coco_test_ids.npy"))
    sixth = iter(range(10_000_000, 10_000_009))
    captions = [
        int(next(test_ids if number < 5 else sixth)) for count in counts for number in range(count)
    ]
    return images, np.array(captions), np.repeat(np.arange(5000), counts), eccv


def test_the_ids_are_checked_before_anything_is_trained(published):
    images, captions, _, folder = published
    benchmark = check_coco_ids(images, captions, folder)
    assert len(benchmark.rows) == 5000
    assert len(benchmark.columns) == 25_000
    assert [len(rows) for rows, _ in benchmark.folds()] == [1000] * 5
    assert benchmark.cxc[1].shape == (25_000, 5000)
    with pytest.raises(ValueError, match=r"`caption_ids`.*lacks 25000 ids"):
        check_coco_ids(images, np.arange(25_000) + 20_000_000, folder)
    missing = np.flatnonzero(captions == 770337)[0]
    with pytest.raises(ValueError, match="lacks 1 id, for instance 770337"):
        check_coco_ids(images, np.delete(captions, missing), folder)
    with pytest.raises(ValueError, match=r"`image_ids`.*lacks 1 id, for instance 391895"):
        check_coco_ids(images[1:], captions, folder)


def test_region_files_with_ids_reach_every_truth(published, shared_data, tmp_path):
    """SCAN's `testall`: real captions in its order, stand-in regions, ids of ECCV Caption."""
    images, captions, owner, folder = published
    text = (shared_data / "coco_annotations" / "karpathy_testall_caps.txt").read_text()
    (tmp_path / "testall_caps.txt").write_text(text)
    scene = np.random.default_rng(99).normal(size=(5000, 1, DIM))
    np.save(tmp_path / "testall_ims.npy", scene.astype("float32"))
    (tmp_path / "testall_ids.txt").write_text("".join(f"{image}\n" for image in images))
    ids = read_ids(folder / "coco_test_ids.npy")
    (tmp_path / "testall_caption_ids.txt").write_text("".join(f"{number}\n" for number in ids))
    records = regions.load(tmp_path, "testall", verbose=False).records
    benchmark = check_coco_ids(records.image_ids, records.caption_ids, folder)
    own = images[owner[np.isin(captions, ids)]]
    np.testing.assert_array_equal(benchmark.caption_images, own)


def test_the_released_list_of_caption_ids_repeats_twelve(shared_data, published, tmp_path):
    """DAA's `testall_caption_ids.txt` took captions of an image that read alike for one."""
    source = shared_data / "coco_annotations"
    text = (source / "karpathy_testall_caps.txt").read_text()
    (tmp_path / "testall_caps.txt").write_text(text)
    np.save(tmp_path / "testall_ims.npy", np.zeros((5000, 1, 2), "float32"))
    released = (source / "testall_caption_ids.txt").read_text()
    (tmp_path / "testall_caption_ids.txt").write_text(released)
    with pytest.raises(ValueError, match=r"testall_caption_ids.txt:\d+: id \d+ occurs twice"):
        regions.load(tmp_path, "testall", verbose=False)
