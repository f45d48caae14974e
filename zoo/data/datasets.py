"""Data sets by name: a run's `config.json` names a loader and its options, and `open` opens them.

A new data set is one loader function and one line in `LOADERS` (`zoo.data.datasets`), and its test.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from halo_search.errors import InputError
from halo_search.files.environment import cache_folder
from zoo.data.loaders import coco, cub, flickr30k, own_pairs, regions, vectors
from zoo.data.records import joined
from zoo.data.records.semantics import semantics
from zoo.data.records.sources import Split, pictures
from zoo.data.text.prompts import spoken
from zoo.data.toy import birds as toy_birds
from zoo.data.toy import scenes as toy_scenes

VALIDATIONS = ("val1", "val2", "val3")  # classes that training leaves out
SPLITS = ("train", "validation", "test")


@dataclasses.dataclass(frozen=True)
class Reading:
    """How every loader of pictures reads a split; `held_out` is the split that `"test"` means."""

    image_size: int = 224
    held_out: str = "test"
    skip_bad: bool = False
    resize: str = "crop"
    crop_fraction: float = 1.0

    @property
    def checked(self):
        """What a function from files to records takes."""
        return {"image_size": self.image_size, "skip_bad": self.skip_bad}

    def split(self, records, name: str) -> Split:
        """The split of this name, of these records."""
        return pictures(records, self.image_size, name, self.resize, self.crop_fraction)


READING = tuple(field.name for field in dataclasses.fields(Reading))


def load_cub(split, root, captions=None, validation=None, reading=Reading()):
    """CUB-200-2011: 150 classes to train on and 50 that training has not seen."""
    held_out = {"val": "val1"}.get(reading.held_out, reading.held_out)
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
    records = cub.load(root, captions, names[split], **reading.checked).records
    return reading.split(records, split)


def load_toy_birds(split, root=None, validation=None, more_classes=0, reading=Reading(64)):
    """Toy Birds, drawn if need be; the splits are those of CUB and the truth is known."""
    sizes = {"more_classes": more_classes} if more_classes else {}
    if root is None:  # folders of one name, since the test is the same
        root = cache_folder(*([f"more_classes_{more_classes}"] if sizes else []), "toy_birds")
    root = toy_birds.generate(root, **sizes)
    opened = load_cub(split, root, validation=validation, reading=reading)
    if split == "train":
        return opened
    return dataclasses.replace(opened, true_matches=toy_birds.true_matches(root, opened.records))


def load_few_classes(
    split, num_classes=None, root=None, captions=None, classes=None, reading=Reading()
):
    """A few classes of CUB, or without `root` of Toy Birds, seen and unseen in training."""
    if (num_classes is None) == (classes is None):
        raise InputError(
            f"data: one of `num_classes` and `classes` must be given; received {num_classes} and "
            f"{classes}"
        )
    is_toy = root is None
    root = toy_birds.generate(cache_folder("toy_birds")) if is_toy else root
    parts = ("trainval",) if classes is None else ("trainval", "seen_test", "test")
    records = joined([cub.load(root, captions, part, **reading.checked).records for part in parts])
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
    opened = reading.split(records.select(chosen), split)
    if not is_toy:
        return opened
    return dataclasses.replace(opened, true_matches=toy_birds.true_matches(root, opened.records))


def load_coco(split, root, reading=Reading()):
    """COCO by Karpathy's splits: `root` holds dataset_coco.json and the images' folders."""
    paths = [root / "dataset_coco.json", root / "annotations" / "dataset_coco.json"]
    annotations = next((path for path in paths if path.exists()), paths[0])
    name = _karpathy(split, reading.held_out)
    records = coco.load(annotations, root, split=name, **reading.checked).records
    return reading.split(records, split)


def load_flickr30k(split, root, reading=Reading()):
    """Flickr30K: `root` holds dataset_flickr30k.json and flickr30k-images/."""
    records = flickr30k.load(
        root / "dataset_flickr30k.json",
        root / "flickr30k-images",
        split=_karpathy(split, reading.held_out),
        **reading.checked,
    ).records
    return reading.split(records, split)


def load_regions(split, root, held_out="test", skip_bad=False):
    """Precomputed regions in SCAN's files, which `root` holds, see `zoo.data.regions`."""
    test = "testall" if (root / "testall_ims.npy").exists() else "test"
    name = {"train": "train", "validation": "dev", "test": test if held_out == "test" else "dev"}
    records = regions.load(root, split=name[split], skip_bad=skip_bad).records
    return Split(records, regions.features(records))


def load_toy_scenes(split, layout="coco", num_images=None, reading=Reading()):
    """Toy Scenes in one of their layouts, drawn if need be; the truth about them is known."""
    layouts = {"coco": load_coco, "flickr30k": load_flickr30k, "regions": None}
    if layout not in layouts:
        raise InputError(f"data: `layout` must be one of {list(layouts)}; received {layout!r}")
    number = "" if num_images is None else f"_{num_images}"
    sizes = {} if num_images is None else {"num_images": num_images}
    root = toy_scenes.generate(cache_folder(f"toy_scenes{number}"), **sizes)
    if layout == "regions":  # there are no pictures
        opened = load_regions(split, root / layout, reading.held_out, reading.skip_bad)
    else:
        opened = layouts[layout](split, root / layout, reading)
    if split == "train":  # nobody asks, and it takes a while
        return opened
    truth = toy_scenes.truth_matrix(root, opened.records)
    return dataclasses.replace(opened, true_matches=truth.sum(0), truth=truth)


def load_pairs(
    split,
    root,
    seed=0,
    held_out_share=0.1,
    image_column="image",
    caption_column="caption",
    separator=None,
    images=None,
    reading=Reading(),
):
    """Pictures and captions of one's own; see `zoo.data.captioned_folder` for what `root` holds."""
    name = "validation" if split == "test" and reading.held_out == "val" else split
    names = (image_column, caption_column, separator, images)
    records = own_pairs.load_split(root, name, held_out_share, seed, reading.skip_bad, *names)
    return reading.split(records, split)


def open(description: Mapping[str, Any], split: str = "test") -> Split:
    """Opens one `Split` of the data that a description names.

    ```python
    zoo.data.open({"loader": "cub", "root": "CUB_200_2011", "image_size": 224}, "train")
    ```

    Args:
        description: a dict of JSON values: `loader`, one of `LOADERS`, and its options. Every
            loader takes `held_out`, the split that `"test"` means (`"val"` to choose settings),
            and `skip_bad`, which leaves out what is bad; loaders of pictures take `image_size`,
            `resize`, the `mode` of `zoo.data.images.resize`, and `crop_fraction`. With `semantics`,
            `{"variant": "cider", "splits": ["train"]}`, the records of these splits know what
            their captions have in common.
        split: `"train"`, `"validation"` or `"test"`.

    Raises:
        ValueError: if `split` is unknown.
        InputError: if the description names no loader or unknown options, or the data are absent
            or not what they have to be.
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    options = dict(description)
    name = options.pop("loader", None)
    if name not in LOADERS:
        raise InputError(f"data: `loader` must be one of {', '.join(LOADERS)}; received {name!r}")
    meaning = options.pop("semantics", None) or {}
    load = LOADERS[name]
    signature = inspect.signature(load)
    known = [option for option in list(signature.parameters)[1:] if option != "reading"]
    if "reading" in signature.parameters:
        given = {option: options.pop(option) for option in READING if option in options}
        default = signature.parameters["reading"].default
        options["reading"] = dataclasses.replace(default, **given)
        known += READING
    try:
        signature.bind(split, **options)
    except TypeError as error:
        message = f"data of loader {name!r}: {error}; its options are {', '.join(known)}"
        raise InputError(message) from error
    if options.get("root") is not None:
        options["root"] = Path(options["root"]).expanduser()
    opened = load(split, **options)
    if split in meaning.get("splits", ()):
        semantic = semantics(opened.records, meaning["variant"])
        opened = opened.with_records(dataclasses.replace(opened.records, semantics=semantic))
    return opened


def _karpathy(split, held_out):
    """Karpathy's name of a split; `held_out` is "test" or "val"."""
    return {"train": "train", "validation": "val", "test": held_out}[split]


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
