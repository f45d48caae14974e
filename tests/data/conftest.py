"""Tiny sets of Toy Birds and toy scenes for all tests of the data."""

import shutil

import pytest
from PIL import Image

from zoo.data import cub, toy_birds, toy_scenes

SIZES = {"num_classes": 12, "images_per_class": 5, "image_size": 32}


@pytest.fixture(scope="session")
def toy_root(tmp_path_factory):
    return toy_birds.generate(tmp_path_factory.mktemp("toy") / "birds", seed=3, **SIZES)


@pytest.fixture
def toy_copy(toy_root, tmp_path):
    return shutil.copytree(toy_root, tmp_path / "birds")


@pytest.fixture(scope="session")
def toy_records(toy_root):
    return cub.load(toy_root, split="trainval", image_size=32, verbose=False).records


@pytest.fixture(scope="session")
def scenes_sizes():
    return {"num_images": 50, "num_species": 6, "image_size": 48, "region_dim": 16}


@pytest.fixture(scope="session")
def scenes_root(tmp_path_factory, scenes_sizes):
    return toy_scenes.generate(tmp_path_factory.mktemp("toy") / "scenes", seed=3, **scenes_sizes)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for index, name in enumerate(("a.jpg", "b.png", "c.jpg")):
        Image.new("RGB", (20 + index, 16), (80 * index, 90, 200)).save(folder / name)
    return folder
