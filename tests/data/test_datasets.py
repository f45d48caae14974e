import json

import keras
import numpy as np
import pytest
from PIL import Image

from halo_search.errors import InputError
from pairs import load_pairs
from zoo import data
from zoo.data import datasets, toy_birds, toy_scenes
from zoo.data.records.sources import pictures


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    root = tmp_path_factory.mktemp("birds") / "toy"
    return toy_birds.generate(root, num_classes=16, images_per_class=8, image_size=16)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    root = tmp_path_factory.mktemp("scenes") / "toy"
    return toy_scenes.generate(root, num_images=40, num_species=4, image_size=32, region_dim=8)


def ids(description):
    return {name: set(data.open(description, name).records.image_ids) for name in datasets.SPLITS}


@pytest.mark.usefixtures("undecoded")
def test_cubs_validation_is_of_seen_classes_and_its_test_is_not(birds):
    description = {"loader": "cub", "root": str(birds), "image_size": 16}
    splits = {name: data.open(description, name).records for name in datasets.SPLITS}
    labels = {name: set(records.image_labels) for name, records in splits.items()}
    assert labels["validation"] <= labels["train"]
    assert not labels["test"] & labels["train"]
    images = ids(description)
    assert not images["validation"] & images["train"]


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("held_out", ["val", "val1"])
def test_settings_are_chosen_on_classes_that_training_leaves_out(birds, held_out):
    description = {"loader": "cub", "root": str(birds), "image_size": 16, "held_out": held_out}
    images = ids(description)
    assert images["validation"] == images["test"]
    train = data.open(description, "train").records
    assert not set(data.open(description, "test").records.image_labels) & set(train.image_labels)


@pytest.mark.usefixtures("undecoded")
def test_validation_may_be_of_classes_that_training_leaves_out(birds):
    description = {"loader": "cub", "root": str(birds), "image_size": 16, "validation": "val2"}
    splits = {name: data.open(description, name).records for name in datasets.SPLITS}
    labels = {name: set(records.image_labels) for name, records in splits.items()}
    assert not labels["validation"] & labels["train"]
    assert not labels["test"] & (labels["train"] | labels["validation"])
    whole = data.open({**description, "validation": None}, "train").records
    assert labels["train"] | labels["validation"] == set(whole.image_labels)
    with pytest.raises(InputError, match="`validation` must be one of val1, val2, val3"):
        data.open({**description, "validation": "seen"})
    with pytest.raises(InputError, match="for a `held_out` of 'test'"):
        data.open({**description, "held_out": "val1"})


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("layout", ["coco", "flickr30k", "regions"])
def test_every_layout_of_scenes_has_three_splits_and_the_truth(layout, scenes, monkeypatch):
    monkeypatch.setattr(toy_scenes, "generate", lambda root: scenes)
    description = {"loader": "toy_scenes", "layout": layout}
    images = ids(description)
    assert not images["train"] & (images["validation"] | images["test"])
    assert not images["validation"] & images["test"]
    test = data.open(description, "test")
    records = test.records
    assert test.truth.shape == (records.num_images, records.num_captions)
    assert test.truth[records.caption_image, np.arange(records.num_captions)].all()
    np.testing.assert_array_equal(test.true_matches, test.truth.sum(0))
    assert (test.picture is None) == (layout == "regions")
    chosen = ids({**description, "held_out": "val"})
    assert chosen["test"] == images["validation"]


@pytest.fixture
def photos(tmp_path):
    rows = ["image,caption"]
    for index in range(20):
        Image.new("RGB", (20, 16), (index, 0, 0)).save(tmp_path / f"{index}.png")
        rows.append(f"{index}.png,picture {index}")
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.usefixtures("undecoded")
def test_pairs_are_divided_by_the_seed_and_nothing_is_lost(photos):
    description = {"loader": "pairs", "root": str(photos), "image_size": 16, "seed": 3}
    images = ids(description)
    assert {name: len(found) for name, found in images.items()} == {
        "train": 16,
        "validation": 2,
        "test": 2,
    }
    assert len(set.union(*images.values())) == 20
    assert ids(description) == images
    assert ids({**description, "seed": 4}) != images
    assert ids({**description, "held_out": "val"})["test"] == images["validation"]


@pytest.mark.usefixtures("undecoded")
def test_a_split_that_is_asked_for_has_semantics(birds):
    description = {
        "loader": "cub",
        "root": str(birds),
        "image_size": 16,
        "semantics": {"variant": "cider", "splits": ["train"]},
    }
    json.dumps(description)
    assert data.open(description, "test").records.semantics is None
    records = data.open(description, "train").records
    assert records.semantics.shape == (records.num_images, records.num_captions)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"loader": "imagenet"}, "received 'imagenet'"),
        ({"loader": "cub"}, "loader 'cub': missing a required argument: 'root'; its options are"),
        ({"loader": "toy_birds", "size": 3}, "unexpected keyword argument 'size'"),
    ],
)
def test_what_cannot_be_opened_is_said(description, message):
    with pytest.raises(InputError, match=message):
        data.open(description)


def test_features_of_other_pixels_are_other_features(tmp_path):
    Image.new("RGB", (8, 6)).save(tmp_path / "a.png")
    (tmp_path / "pairs.csv").write_text("image,caption\n" + "a.png,a\n")
    records = load_pairs(tmp_path / "pairs.csv").records
    shown = keras.Input((4, 4, 3))
    backbone = keras.Model(shown, shown)
    for resize in ("crop", "stretch"):
        split = pictures(records, 4, resize=resize)
        data.features.cached(tmp_path, backbone, records, split.source, verbose=False)
    assert len(list(tmp_path.glob("features-*.npy"))) == 2


@pytest.mark.usefixtures("undecoded")
def test_few_classes_by_name_may_be_of_unseen_ones(birds):
    every = [data.open({"loader": "cub", "root": str(birds)}, s) for s in ("train", "test")]
    names = every[0].records.class_names
    chosen = [names[split.records.image_labels[0]] for split in every]
    spoken = [data.prompts.spoken(name) for name in chosen]
    description = {"loader": "few_classes", "root": str(birds), "classes": spoken, "image_size": 16}
    splits = [data.open(description, name).records for name in ("train", "test")]
    for records in splits:
        assert {names[label] for label in records.image_labels} == set(chosen)
        told = records.captions[records.caption_image == 0]
        assert len(told) == 10
    assert splits[0].num_images + splits[1].num_images == 16, "seen, held-out and unseen images"
    with pytest.raises(InputError, match=r"classes\.txt: lacks a dodo"):
        data.open({**description, "classes": ["a dodo"]})
    with pytest.raises(InputError, match="num_classes"):
        data.open({**description, "num_classes": 2})


@pytest.mark.usefixtures("undecoded")
def test_the_seen_classes_may_be_the_test(birds):
    plain = {"loader": "cub", "root": str(birds), "image_size": 16}
    before, after = ids(plain), ids({**plain, "held_out": "seen_test"})
    assert after["train"] == before["train"]
    assert after["test"] == before["validation"]
    assert after["validation"] == before["test"]
