"""The training and the held-out split of a data set, and how their images are read.

Each function takes a recipe's settings. Without `data_dir` it gives the toy set that is laid out
as the real one: Toy Birds for CUB, Toy Scenes for the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo.data import coco, cub, flickr30k, own_pairs, regions, toy_birds, toy_scenes
from zoo.data.records import Records
from zoo.data.sources import Pictures
from zoo.errors import InputError

TOY_BIRDS = Path("data") / "toy_birds"
TOY_SCENES = Path("data") / "toy_scenes"


@dataclass(frozen=True)
class Split:
    """A split and what shows it.

    Attributes:
        records: its `Records`.
        source: of its images or features, see `zoo.data.sources`.
        picture: function from an image's index to its pixels, or None where there are none.
        fits: `(M,)`, how many of the split's images each caption is true of, where it is known.
    """

    records: Records
    source: Any
    picture: Callable | None = None
    fits: np.ndarray | None = None


class Splits(NamedTuple):
    """What a recipe trains on, and what it evaluates."""

    train: Split
    held_out: Split


def cub_pictures(settings, **options):
    """CUB's training classes and classes that are not among them, or Toy Birds'.

    Args:
        settings: a recipe's. `held_out` is `"test"`, whose classes `trainval` has not, or `"val1"`
            to `"val3"` (`"val"` is the first) for `train1` to `train3`.
        **options: of `zoo.data.cub.load`.
    """
    root = settings.data_dir or toy_birds.generate(TOY_BIRDS)
    held_out = {"val": "val1"}.get(settings.held_out, settings.held_out)
    train = "trainval" if held_out == "test" else held_out.replace("val", "train")

    def load(name):
        return cub.load(
            root, split=name, image_size=settings.image_size, skip_bad=settings.skip_bad, **options
        ).records

    truth = toy_birds.true_matches if settings.data_dir is None else None
    return _splits(settings, [load(train), load(held_out)], root, truth)


def drawn_scenes(settings):
    """The folder of Toy Scenes, drawn if need be, as many as `settings.toy_images` if it is set."""
    number = getattr(settings, "toy_images", None)
    if number is None:
        return toy_scenes.generate(TOY_SCENES)
    return toy_scenes.generate(TOY_SCENES.with_name(f"toy_scenes_{number}"), num_images=number)


def coco_pictures(settings):
    """COCO by Karpathy's splits: `data_dir` holds dataset_coco.json and the images' folders."""
    root = settings.data_dir or drawn_scenes(settings) / "coco"

    def load(name):
        return coco.load(
            _first(root, "dataset_coco.json", "annotations/dataset_coco.json"),
            root,
            split=name,
            image_size=settings.image_size,
            skip_bad=settings.skip_bad,
        ).records

    return _splits(settings, [load(name) for name in _names(settings)], root, _scenes(settings))


def flickr30k_pictures(settings):
    """Flickr30K: `data_dir` holds dataset_flickr30k.json and flickr30k-images/."""
    root = settings.data_dir or drawn_scenes(settings) / "flickr30k"

    def load(name):
        return flickr30k.load(
            root / "dataset_flickr30k.json",
            root / "flickr30k-images",
            split=name,
            image_size=settings.image_size,
            skip_bad=settings.skip_bad,
        ).records

    return _splits(settings, [load(name) for name in _names(settings)], root, _scenes(settings))


def region_features(settings):
    """Precomputed regions in SCAN's files, which `data_dir` holds, see `zoo.data.regions`.

    The test images are those of `testall`, where there are such files: COCO's 5,000, of which
    `test` is the first fifth.
    """
    root = settings.data_dir or drawn_scenes(settings) / "regions"
    test = "testall" if (root / "testall_ims.npy").exists() else "test"
    held_out = {"val": "dev", "test": test}.get(settings.held_out, settings.held_out)
    train, rest = (
        regions.load(root, split=name, skip_bad=settings.skip_bad).records
        for name in ("train", held_out)
    )
    truth = _scenes(settings)
    return Splits(
        Split(train, regions.features(train)),
        Split(rest, regions.features(rest), fits=truth and truth(root, rest)),
    )


def table_of_pairs(settings):
    """Pairs of one's own: `data_dir` holds `pairs.csv`, `pairs.tsv` or `pairs.jsonl` and pictures.

    One image in twenty is held out, up to 5,000 as COCO has; which ones follows from the seed.
    Without `data_dir` it is Toy Scenes.
    """
    if settings.data_dir is None:
        return coco_pictures(settings)
    table = _first(settings.data_dir, *(f"pairs.{end}" for end in ("csv", "tsv", "jsonl")))
    records = own_pairs.load(
        table, image_size=settings.image_size, skip_bad=settings.skip_bad
    ).records
    if records.num_images < 2:
        raise InputError(f"{table}: expected two images at least, one of them held out; found one")
    order = np.random.default_rng(settings.seed).permutation(records.num_images)
    count = min(5000, max(1, records.num_images // 20))
    halves = [records.select(part) for part in (order[count:], order[:count])]
    return _splits(settings, halves, settings.data_dir, None)


def few_classes(settings):
    """The first `num_classes` classes that CUB, or Toy Birds, trains on, seen and looked at.

    Every fourth image of a class is held out, so that a model of the plane can be drawn with images
    that it has not seen, of classes that it has.
    """
    root = settings.data_dir or toy_birds.generate(TOY_BIRDS)
    options = {"image_size": settings.image_size, "skip_bad": settings.skip_bad}
    records = cub.load(root, settings.captions, split="trainval", **options).records
    classes = np.unique(records.image_labels)[: settings.num_classes]
    members = [np.flatnonzero(records.image_labels == label) for label in classes]
    held_out = np.concatenate([images[::4] for images in members])
    train = np.setdiff1d(np.concatenate(members), held_out)
    if not len(train):
        raise InputError(f"{root}: expected two images of a class at least")
    truth = toy_birds.true_matches if settings.data_dir is None else None
    return _splits(settings, [records.select(part) for part in (train, held_out)], root, truth)


def _splits(settings, records, root, truth):
    train, held_out = records
    shown = Pictures(held_out, settings.image_size, cache=False)
    fits = truth and truth(root, held_out)
    return Splits(
        Split(train, Pictures(train, settings.image_size)),
        Split(held_out, shown, shown.picture, fits),
    )


def _names(settings):
    return ("train", settings.held_out)


def _scenes(settings):
    """What is true of toy scenes lies beside their layouts."""
    if settings.data_dir is not None:
        return None
    return lambda root, records: toy_scenes.true_matches(Path(root).parent, records)


def _first(root, *names):
    paths = [root / name for name in names]
    return next((path for path in paths if path.exists()), paths[0])
