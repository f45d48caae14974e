"""The division of CUB's classes into seen and unseen (Xian et al., CVPR 2017)."""

import json
from pathlib import Path

from zoo.errors import InputError
from zoo.files.text_files import existing_folder, read_lines

_FOLDER = "splits_pcme_xian"
_FILES = {
    "trainval": "trainvalclasses.txt",
    "test": "testclasses.txt",
    "seen_test": "trainvalclasses.txt",
    **{f"train{fold}": f"trainclasses{fold}.txt" for fold in (1, 2, 3)},
    **{f"val{fold}": f"valclasses{fold}.txt" for fold in (1, 2, 3)},
}
SPLITS = tuple(_FILES)


def read_split(root, folder, split, class_names, images, problems):
    """Which classes a split has, and which of their images.

    Args:
        root: the folder of the data set.
        folder: the folder with the split's files, or None to look for it.
        split: one of `SPLITS`.
        class_names: all classes, by label.
        images: `{image number: (file name, label)}`.
        problems: where unknown classes and images are reported.

    Returns:
        `(labels, in_split)`: the set of the split's labels, and a function that says of an
        image number of these classes whether it belongs to the split.

    Raises:
        InputError: if the files are not there or name what does not exist.
    """
    if folder is None and not (root / _FOLDER).is_dir():
        labels, seen = _published(root, split, class_names, images)
    else:
        folder = existing_folder(root / _FOLDER if folder is None else folder, "splits folder")
        known = {name: label for label, name in enumerate(class_names)}
        labels = _listed(folder / _FILES[split], known, "class", problems)
        known = {name: number for number, (name, _) in images.items()}
        seen = _listed(folder / "seen_test_images.txt", known, "image", problems)
    if split == "seen_test":
        return labels, lambda number: number in seen
    if split in ("trainval", "train1", "train2", "train3"):
        return labels, lambda number: number not in seen
    return labels, lambda number: True


def _listed(path, known, what, problems):
    """The numbers of the classes or images that a file names, one a line."""
    numbers = set()
    for line, text in enumerate(read_lines(path), start=1):
        name = text.strip()
        if name in known:
            numbers.add(known[name])
        elif name:
            problems.bad(f"unknown {what} names", f"{path}:{line}", f"unknown {what} {name!r}")
    return numbers


def _published(root, split, class_names, images):
    """The real set's division, by the numbers of its classes and images."""
    if len(class_names) != 200 or max(images, default=0) > 11788:
        raise InputError(
            f"{root}: no folder {_FOLDER}, and this is not CUB-200-2011, whose division is known"
        )
    table = json.loads(Path(__file__).with_suffix(".json").read_text())
    name = "trainval" if split == "seen_test" else split
    return {number - 1 for number in table[name]}, set(table["seen_test_images"])
