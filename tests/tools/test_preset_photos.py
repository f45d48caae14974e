"""What the presets of photos are trained on: never a photo that is shown."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from tools import preset_photos
from zoo.confidence.probes import contents_hash
from zoo.data.loaders.packaged_photos import FOLDER
from zoo.data.records import Records
from zoo.data.records.sources import Features, Split
from zoo.evaluation import probes_of


def test_the_table_holds_no_photo_that_is_shown(shared_data, tmp_path):
    preset_photos.write_table(shared_data, tmp_path)
    with open(tmp_path / "pairs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = {path.name for path in FOLDER.glob("*.jpg")}
    assert len(shown) == 170
    of_coco = [row for row in rows if row["image"].startswith("coco/")]
    assert not {row["image"].removeprefix("coco/") for row in of_coco} & shown
    assert len({row["image"] for row in of_coco}) == 569 - 170
    assert {row["split"] for row in of_coco} == {"train"}
    assert all((tmp_path / row["image"]).is_file() for row in of_coco[::50])
    held_out = {row["image"] for row in rows if row["split"] != "train"}
    assert len(held_out) == 2000
    assert not held_out & {row["image"] for row in rows if row["split"] == "train"}


@pytest.mark.parametrize("name", preset_photos.NAMES)
def test_the_preset_remembers_none_that_is_shown(name, shared_data):
    if name not in zoo.list_presets():
        pytest.skip(f"the preset {name} is not in this checkout")
    trained_on = probes_of(name).trained_on
    assert len(trained_on) > 5900  # of 5,990, some of which are the same
    shown = sorted(FOLDER.glob("*.jpg"))
    originals = [shared_data / "coco_subset" / "images" / path.name for path in shown]
    found = np.array([contents_hash(path) for path in [*shown, *originals]], np.uint64)
    assert not np.isin(found, trained_on).any()


def test_captions_of_coco_come_several_times(tmp_path):
    records = Records(
        name="both",
        image_paths=["flickr8k/a.jpg", f"{tmp_path}/coco/b.jpg"],
        captions=["a dog", "a bus", "a red bus"],
        caption_image=[0, 1, 1],
        image_labels=[0, 1],
        image_ids=[0, 1],
        caption_vectors=Features(np.arange(6.0).reshape(3, 2)),
    )
    started = SimpleNamespace(train=Split(records, None))
    preset_photos.repeat(started, tmp_path / "coco")
    found = started.train.records
    assert found.captions.tolist() == ["a dog", *["a bus", "a red bus"] * preset_photos.COCO_TIMES]
    assert found.caption_vectors.gather(np.array([0, 3, 4])).numpy().tolist() == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
