"""The systems of Flickr8k's table on stored features, and the parts that own_pairs is tried on."""

import csv
from collections import Counter

import numpy as np
import pytest

import zoo
from studies import flickr8k_run, flickr8k_table, own_pairs_table
from zoo import cli
from zoo.data import toy_birds


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(6, 5, 8)).astype("float32")
    states[:, 3:] = 0  # padding
    return {
        "images": rng.normal(size=(6, 2, 2, 8)).astype("float32"),
        "captions": states,
        "image_labels": np.arange(6),
        "caption_labels": np.arange(6),
    }


@pytest.mark.parametrize(
    "system",  # a Gaussian and a set; the builders of all have tests of their own
    [
        pytest.param(name, marks=[] if name in ("pcmepp", "dive") else pytest.mark.very_slow)
        for name in flickr8k_run.SYSTEMS
    ],
)
@pytest.mark.usefixtures("one_eagerly")
def test_every_system_trains_on_the_same_stored_features(system, batch):
    settings = flickr8k_run.Settings(system=system, dim=8)
    towers = {
        "image_backbone": flickr8k_run.passed_on((2, 2, 8)),
        "caption_backbone": flickr8k_run.stored_states(5, 8),
        "dim": 8,
    }
    model = flickr8k_run.SYSTEMS[system](settings, towers)
    model.compile("sgd")
    assert np.isfinite(model.train_on_batch(batch)).all()
    # What is padding does not count.
    longer = np.concatenate([batch["captions"][:, :3], np.zeros((6, 2, 8), "float32")], axis=1)
    both = (model.caption_encoder(given) for given in (batch["captions"], longer))
    for one, other in zip(*(found.values() for found in both), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_table_has_a_row_for_every_system():
    assert set(flickr8k_table.SYSTEMS.values()) == set(flickr8k_run.SYSTEMS)


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "flickr8k"
    root.mkdir()
    with open(root / "pairs.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "caption", "split"))
        for image in range(40):
            split = "train" if image < 30 else ("validation", "test")[image % 2]
            writer.writerows((f"{image}.jpg", f"{word} {image}", split) for word in ("a", "b"))
    return tmp_path


def test_a_part_has_its_own_photos_with_each_seed_and_all_that_are_held_out(data, tmp_path):
    flags = [f"--data-dir={data}", f"--out={tmp_path / 'out'}"]
    settings = cli.parse(own_pairs_table.Settings, flags)
    drawn = []
    for seed in (0, 1):
        folder = own_pairs_table.written(settings, "10", seed)
        with open(folder / "pairs.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        trained = {row["image"] for row in rows if row["split"] == "train"}
        assert len(trained) == 10
        assert sum(row["split"] == "train" for row in rows) == 20
        assert {row["image"] for row in rows} - trained == {
            f"photos/{image}.jpg" for image in range(30, 40)
        }
        drawn.append(trained)
    assert drawn[0] != drawn[1]
    assert (folder / "photos").resolve() == data / "flickr8k"


def test_a_part_that_is_too_large_is_said(data, tmp_path):
    settings = cli.parse(
        own_pairs_table.Settings, [f"--data-dir={data}", f"--out={tmp_path / 'out'}"]
    )
    with pytest.raises(zoo.errors.InputError, match="has 30 training photos; received 31"):
        own_pairs_table.written(settings, "31", 0)


def test_birds_are_split_by_photo(tmp_path, monkeypatch):
    root = tmp_path / "CUB_200_2011_crops"
    toy_birds.generate(root, num_classes=8, images_per_class=6, image_size=32)
    monkeypatch.setattr(own_pairs_table, "BIRD_PHOTOS", 20)
    settings = cli.parse(
        own_pairs_table.Settings, [f"--data-dir={tmp_path}", f"--out={tmp_path / 'out'}"]
    )
    folder = own_pairs_table.written(settings, "birds", 0)
    with open(folder / "pairs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    photos = {row["image"]: row["split"] for row in rows}
    assert Counter(photos.values()) == {"train": 16, "val": 2, "test": 2}
    assert len(set((row["image"], row["split"]) for row in rows)) == 20
    assert all((folder / image).is_file() for image in photos)
