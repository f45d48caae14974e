"""Data sets by name: a run's `config.json` names a loader and its options, and `open` opens them.

A new data set is one loader function, one line in `LOADERS`, and its test.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zoo.data import coco, cub, flickr30k, images, own_pairs, regions, toy_birds, toy_scenes
from zoo.data.prompts import spoken
from zoo.data.records import Records
from zoo.data.semantics import semantics
from zoo.data.sources import Pictures
from zoo.errors import InputError
from zoo.files.cache import cache_folder

SPLITS = ("train", "validation", "test")
RESIZING = {"resize": "crop", "crop_fraction": 1.0}  # options of all pictures, their defaults


@dataclass(frozen=True, eq=False)
class Split:
    """One split of a data set, and how its images are read.

    Attributes:
        records: its `Records`.
        source: of its images or features, see `zoo.data.sources`.
        picture: function from an image's index to its pixels, or None where there are none.
        true_matches: `(M,)`, how many of the split's images each caption is true of, where it is
            known.
        truth: bool `(N, M)`, whether each caption is true of each image, where it is known.
    """

    records: Records
    source: Any
    picture: Callable | None = None
    true_matches: np.ndarray | None = None
    truth: np.ndarray | None = None

    def with_records(self, records: Records) -> "Split":
        """This split with other captions of the same images."""
        return dataclasses.replace(self, records=records)


def open(description: Mapping[str, Any], split: str = "test") -> Split:
    """Opens one split of the data that a description names.

    ```python
    zoo.data.open({"loader": "cub", "root": "CUB_200_2011", "image_size": 224}, "train")
    ```

    Args:
        description: a dict of JSON values: `loader`, one of `LOADERS`, and its options. Every
            loader takes `held_out`, the split that `"test"` means (`"val"` to choose settings),
            and `skip_bad`, whether to leave out and count what is bad. Loaders of pictures take
            `image_size`, `resize` and `crop_fraction`, see `pictures`. With `semantics`,
            `{"variant": "cider", "splits": ["train"]}`, the records of these splits know what
            their captions have in common, see `zoo.data.semantics`.
        split: `"train"`, `"validation"` or `"test"`.

    Returns:
        A `Split`.

    Raises:
        ValueError: if `split` is unknown.
        InputError: if the description names no loader or unknown options, or the data are not
            there or not what they have to be.
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    options = dict(description)
    name = options.pop("loader", None)
    if name not in LOADERS:
        raise InputError(f"data: `loader` must be one of {', '.join(LOADERS)}; received {name!r}")
    meaning = options.pop("semantics", None) or {}
    load = LOADERS[name]
    try:
        inspect.signature(load).bind(split, **options)
    except TypeError as error:
        known = ", ".join(list(inspect.signature(load).parameters)[1:])
        raise InputError(f"data of loader {name!r}: {error}; its options are {known}") from error
    opened = load(split, **options)
    if split in meaning.get("splits", ()):
        found = semantics(opened.records, meaning["variant"], cache_folder("semantics"))
        opened = opened.with_records(dataclasses.replace(opened.records, semantics=found))
    return opened


def load_cub(
    split,
    root,
    captions=None,
    image_size=224,
    held_out="test",
    skip_bad=False,
    resize="crop",
    crop_fraction=1.0,
):
    """CUB-200-2011: 150 classes to train on and 50 that training has not seen.

    The validation split is the held-out images of the training classes. With a `held_out` of
    `"val1"` to `"val3"` (`"val"` is the first) training has the classes of `"train1"` to
    `"train3"`, and validation and test are that split. With `"seen_test"` the test is the held-out
    images of the training classes, and validation the unseen classes, so that no epoch is chosen
    by the test.
    """
    root = Path(root).expanduser()
    held_out = {"val": "val1"}.get(held_out, held_out)
    names = {"train": "trainval", "validation": "seen_test", "test": held_out}
    if held_out == "seen_test":
        names |= {"validation": "test"}
    elif held_out != "test":
        names |= {"train": held_out.replace("val", "train"), "validation": held_out}
    records = cub.load(
        root, captions, names[split], image_size=image_size, skip_bad=skip_bad
    ).records
    return pictures(records, image_size, split, resize, crop_fraction)


def load_toy_birds(
    split,
    root=None,
    image_size=64,
    held_out="test",
    skip_bad=False,
    resize="crop",
    crop_fraction=1.0,
):
    """Toy Birds, drawn if need be; the splits are those of CUB and the truth is known."""
    root = toy_birds.generate(cache_folder("toy_birds") if root is None else root)
    opened = load_cub(split, root, None, image_size, held_out, skip_bad, resize, crop_fraction)
    if split == "train":
        return opened
    return dataclasses.replace(opened, true_matches=toy_birds.true_matches(root, opened.records))


def load_few_classes(
    split,
    num_classes=None,
    root=None,
    captions=None,
    image_size=224,
    held_out="test",
    skip_bad=False,
    resize="crop",
    crop_fraction=1.0,
    classes=None,
):
    """A few classes of CUB, or without `root` of Toy Birds, seen and unseen in training.

    They are the `num_classes` first of those that training has, or `classes`, by name or number
    and name, out of all. Every fourth image of a class is held out, for validation and test alike:
    a model of the plane is drawn with images that it has not seen, of classes that it has.
    """
    if (num_classes is None) == (classes is None):
        raise InputError(
            f"data: one of `num_classes` and `classes` must be given; received {num_classes} and "
            f"{classes}"
        )
    is_toy = root is None
    root = toy_birds.generate(cache_folder("toy_birds")) if is_toy else Path(root).expanduser()
    parts = ("trainval",) if classes is None else ("trainval", "seen_test", "test")
    records = _joined(
        [
            cub.load(root, captions, part, image_size=image_size, skip_bad=skip_bad).records
            for part in parts
        ]
    )
    if classes is None:
        labels = np.unique(records.image_labels)[:num_classes]
    else:
        known = {spoken(name): label for label, name in enumerate(records.class_names)}
        unknown = [name for name in classes if spoken(name) not in known]
        if unknown:
            raise InputError(f"{root / 'classes.txt'}: lacks {', '.join(unknown)}")
        labels = np.sort([known[spoken(name)] for name in classes])
    members = [np.flatnonzero(records.image_labels == label) for label in labels]
    held = np.concatenate([images[::4] for images in members])
    chosen = np.setdiff1d(np.concatenate(members), held) if split == "train" else held
    if not len(chosen):
        raise InputError(f"{root}: expected two images of a class at least")
    opened = pictures(records.select(chosen), image_size, split, resize, crop_fraction)
    if not is_toy:
        return opened
    return dataclasses.replace(opened, true_matches=toy_birds.true_matches(root, opened.records))


def _joined(parts):
    """The records of several splits of one data set as one."""
    first, *others = parts
    if not others:
        return first
    starts = np.cumsum([0, *(part.num_images for part in parts)])
    owners = [part.caption_image + start for part, start in zip(parts, starts, strict=False)]
    columns = ("image_paths", "captions", "image_labels", "image_ids")
    return dataclasses.replace(
        first,
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns},
        caption_image=np.concatenate(owners),
        skipped=tuple(item for part in parts for item in part.skipped),
        recoded=tuple(name for part in parts for name in part.recoded),
    )


def load_coco(
    split, root, image_size=224, held_out="test", skip_bad=False, resize="crop", crop_fraction=1.0
):
    """COCO by Karpathy's splits: `root` holds dataset_coco.json and the images' folders."""
    root = Path(root).expanduser()
    names = ("dataset_coco.json", "annotations/dataset_coco.json")
    annotations = _first(root, *names)
    name = _karpathy(split, held_out)
    records = coco.load(
        annotations, root, split=name, image_size=image_size, skip_bad=skip_bad
    ).records
    return pictures(records, image_size, split, resize, crop_fraction)


def load_flickr30k(
    split, root, image_size=224, held_out="test", skip_bad=False, resize="crop", crop_fraction=1.0
):
    """Flickr30K: `root` holds dataset_flickr30k.json and flickr30k-images/."""
    root = Path(root).expanduser()
    records = flickr30k.load(
        root / "dataset_flickr30k.json",
        root / "flickr30k-images",
        split=_karpathy(split, held_out),
        image_size=image_size,
        skip_bad=skip_bad,
    ).records
    return pictures(records, image_size, split, resize, crop_fraction)


def load_regions(split, root, held_out="test", skip_bad=False):
    """Precomputed regions in SCAN's files, which `root` holds, see `zoo.data.regions`.

    The test images are those of `testall`, where there are such files: COCO's 5,000, of which
    `test` is the first fifth.
    """
    root = Path(root).expanduser()
    test = "testall" if (root / "testall_ims.npy").exists() else "test"
    name = {"train": "train", "validation": "dev", "test": test if held_out == "test" else "dev"}
    records = regions.load(root, split=name[split], skip_bad=skip_bad).records
    return Split(records, regions.features(records))


TOY_LAYOUTS = {"coco": load_coco, "flickr30k": load_flickr30k, "regions": load_regions}


def load_toy_scenes(split, layout="coco", num_images=None, **options):
    """Toy Scenes in one of their layouts, drawn if need be; the truth about them is known."""
    if layout not in TOY_LAYOUTS:
        raise InputError(f"data: `layout` must be one of {list(TOY_LAYOUTS)}; received {layout!r}")
    if layout == "regions":
        for name in ("image_size", *RESIZING):  # there are no pictures
            options.pop(name, None)
    number = "" if num_images is None else f"_{num_images}"
    sizes = {} if num_images is None else {"num_images": num_images}
    root = toy_scenes.generate(cache_folder(f"toy_scenes{number}"), **sizes)
    opened = TOY_LAYOUTS[layout](split, root / layout, **options)
    if split == "train":  # nobody asks, and it takes a while
        return opened
    truth = toy_scenes.truth_matrix(root, opened.records)
    return dataclasses.replace(opened, true_matches=truth.sum(0), truth=truth)


def load_pairs(
    split,
    root,
    image_size=224,
    held_out="test",
    skip_bad=False,
    seed=0,
    resize="crop",
    crop_fraction=1.0,
):
    """Pairs of one's own: `root` holds `pairs.csv`, `pairs.tsv` or `pairs.jsonl` and pictures.

    One image in ten is for validation and one in ten for the test, up to 5,000 each; which ones
    follows from the seed.
    """
    table = _first(Path(root).expanduser(), *(f"pairs.{end}" for end in ("csv", "tsv", "jsonl")))
    records = own_pairs.load(table, image_size=image_size, skip_bad=skip_bad).records
    if records.num_images < 3:
        raise InputError(
            f"{table}: expected three images at least, one for validation and one for the test; "
            f"found {records.num_images}"
        )
    order = np.random.default_rng(seed).permutation(records.num_images)
    count = min(5000, max(1, records.num_images // 10))
    name = "validation" if split == "test" and held_out == "val" else split
    chosen = {
        "test": order[:count],
        "validation": order[count : 2 * count],
        "train": order[2 * count :],
    }
    return pictures(records.select(chosen[name]), image_size, split, resize, crop_fraction)


LOADERS = {
    "cub": load_cub,
    "coco": load_coco,
    "few_classes": load_few_classes,
    "flickr30k": load_flickr30k,
    "pairs": load_pairs,
    "regions": load_regions,
    "toy_birds": load_toy_birds,
    "toy_scenes": load_toy_scenes,
}


def pictures(records, image_size, split="test", resize="crop", crop_fraction=1.0):
    """A `Split` of pictures. Those of the test are read once, so they are not kept in memory.

    Args:
        records: whose pictures.
        image_size, resize, crop_fraction: see `zoo.data.images.resize`, whose `mode` is `resize`.
        split: of the records.

    Raises:
        InputError: if the resize is unknown, or the fraction not in (0, 1].
    """
    if resize not in images.RESIZES:
        raise InputError(
            f"data: `resize` must be one of {', '.join(images.RESIZES)}; received {resize!r}"
        )
    if not isinstance(crop_fraction, int | float) or not 0 < crop_fraction <= 1:
        raise InputError(f"data: `crop_fraction` must be in (0, 1]; received {crop_fraction!r}")
    cache = False if split == "test" else None
    source = Pictures(records, image_size, resize, crop_fraction, cache)
    return Split(records, source, source.picture)


def resizing(description):
    """How the pictures of a description become squares.

    Whatever shows other pictures to a run's model (search, demo, serving) must do the same.

    Args:
        description: for `open`.

    Returns:
        `{"mode", "crop_fraction"}`, for `zoo.data.images.prepare`.
    """
    given = {**RESIZING, **{name: description[name] for name in RESIZING if name in description}}
    return {"mode": given["resize"], "crop_fraction": given["crop_fraction"]}


def _karpathy(split, held_out):
    return {"train": "train", "validation": "val", "test": held_out}[split]


def _first(root, *names):
    paths = [root / name for name in names]
    return next((path for path in paths if path.exists()), paths[0])
