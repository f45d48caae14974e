"""The loaders of data sets by name: functions from a split's name and options to a `Split`."""

import dataclasses
from pathlib import Path

import numpy as np

from zoo.data.loaders import coco, cub, flickr30k, own_pairs, regions, vectors
from zoo.data.records import joined
from zoo.data.sources.split import RESIZING, Split, pictures
from zoo.data.text.prompts import spoken
from zoo.data.toy import birds as toy_birds
from zoo.data.toy import scenes as toy_scenes
from zoo.errors import InputError
from zoo.files.cache import cache_folder

VALIDATIONS = ("val1", "val2", "val3")  # classes that training leaves out


def load_cub(
    split,
    root,
    captions=None,
    image_size=224,
    held_out="test",
    skip_bad=False,
    resize="crop",
    crop_fraction=1.0,
    validation=None,
):
    """CUB-200-2011: 150 classes to train on and 50 that training has not seen.

    The validation split is the held-out images of the training classes. With a `held_out` of
    `"val1"` to `"val3"` (`"val"` is the first) training has the classes of `"train1"` to
    `"train3"`, and validation and test are that split. With `"seen_test"` the test is the held-out
    images of the training classes, and validation the unseen classes, so that no epoch is chosen
    by the test. With `validation` `"val1"` to `"val3"` training has the classes of `"train1"` to
    `"train3"`, validation those of that split, and the test the unseen ones: what is chosen or
    calibrated on classes that training has not seen holds better for others.
    """
    root = Path(root).expanduser()
    held_out = {"val": "val1"}.get(held_out, held_out)
    names = {"train": "trainval", "validation": "seen_test", "test": held_out}
    if held_out == "seen_test":
        names |= {"validation": "test"}
    elif held_out != "test":
        names |= {"train": held_out.replace("val", "train"), "validation": held_out}
    if validation is not None:
        if held_out != "test" or validation not in VALIDATIONS:
            raise InputError(
                f"data: `validation` must be one of {', '.join(VALIDATIONS)}, for a `held_out` of "
                f"'test'; received {validation!r} and {held_out!r}"
            )
        names |= {"train": validation.replace("val", "train"), "validation": validation}
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
    validation=None,
    more_classes=0,
):
    """Toy Birds, drawn if need be; the splits are those of CUB and the truth is known.

    `more_classes` of `toy_birds.generate` are to train on alone.
    """
    sizes = {"more_classes": more_classes} if more_classes else {}
    if root is None:  # folders of one name, since the test is the same
        root = cache_folder(*([f"more_classes_{more_classes}"] if sizes else []), "toy_birds")
    root = toy_birds.generate(root, **sizes)
    opened = load_cub(
        split, root, None, image_size, held_out, skip_bad, resize, crop_fraction, validation
    )
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
    records = joined(
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
    held_out_share=0.1,
    image_column="image",
    caption_column="caption",
    separator=None,
):
    """Pictures and captions of one's own; see `own_pairs.load_split` for what `root` holds.

    One image in ten is for validation and one in ten for the test, up to 5,000 each, unless a
    column `split` says which; which ones follows from the seed.
    """
    name = "validation" if split == "test" and held_out == "val" else split
    names = (image_column, caption_column, separator)
    records = own_pairs.load_split(root, name, held_out_share, seed, skip_bad, *names)
    return pictures(records, image_size, split, resize, crop_fraction)


def _karpathy(split, held_out):
    return {"train": "train", "validation": "val", "test": held_out}[split]


def _first(root, *names):
    paths = [root / name for name in names]
    return next((path for path in paths if path.exists()), paths[0])


LOADERS = {
    "cub": load_cub,
    "coco": load_coco,
    "few_classes": load_few_classes,
    "flickr30k": load_flickr30k,
    "pairs": load_pairs,
    "regions": load_regions,
    "toy_birds": load_toy_birds,
    "toy_scenes": load_toy_scenes,
    "vectors": vectors.load,
}
