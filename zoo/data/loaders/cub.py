"""CUB-200-2011 with Reed's captions: the real set, a part of it, or Toy Birds."""

import os
from typing import Any

from zoo.data.loaders.cub_files import SPLITS, read_captions, read_numbered, read_split
from zoo.data.pipeline import batches
from zoo.data.records import Loaded, Problems, Records
from zoo.errors import InputError
from zoo.files.decoding import check_images
from zoo.files.text_files import existing_folder, safe_relative, whole_number

CAPTIONS_PER_IMAGE = 10


def load(
    root: str | os.PathLike,
    captions: str | os.PathLike | None = None,
    split: str = "trainval",
    image_size: int = 224,
    splits: Any = None,
    skip_bad: bool = False,
    verbose: bool = True,
) -> Loaded:
    """Reads one split of CUB-200-2011 with ten captions an image.

    Args:
        root: the folder `CUB_200_2011`, with `images.txt`, `classes.txt`,
            `image_class_labels.txt` and `images/`.
        captions: Reed's captions: a folder of `CLASS/IMAGE.txt` with ten lines each, or an archive
            of it. By default `text_c10` or `text_c10.tar.gz` in `root`.
        split: after Xian et al. (CVPR 2017), as in PCME. `"trainval"`: the 150 classes to train
            on, without the images of `"seen_test"`; `"test"`: the 50 unseen classes;
            `"seen_test"`: held-out images of the training classes; `"train1"` … `"train3"` and
            `"val1"` … `"val3"`: three divisions of the 150 into 100 and 50.
        image_size: height and width of the images in the dataset.
        splits: a folder with `trainvalclasses.txt` and so on. By default `splits_pcme_xian` in
            `root`, else the division of the real set, which the zoo has.
        skip_bad: leave out what is bad, and count it, instead of raising.
        verbose: print one line with the counts.

    Returns:
        A `Loaded` tuple `(records, dataset)`. The dataset yields one caption with its image:
        `images` `(image_size, image_size, 3)` float32 in 0 … 255, `captions` string,
        `image_labels` and `caption_labels` int32.

    Raises:
        ValueError: if `split` is unknown.
        InputError: if something is absent, cannot be read, or is not what it has to be.

    Reference: Wah et al., "The Caltech-UCSD Birds-200-2011 Dataset"; Reed et al., "Learning Deep
        Representations of Fine-Grained Visual Descriptions" (CVPR 2016).
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    root = existing_folder(root, "data folder")
    problems = Problems(skip_bad)
    class_names = _read_classes(root)
    images = _read_images(root, class_names, problems)
    chosen, in_split = read_split(root, splits, split, class_names, images, problems)
    kept = _readable(root, class_names, images, in_split, chosen, problems)
    texts, recoded = _read_captions(root, captions, images, kept, problems)
    kept = [number for number in kept if number in texts]
    if not kept:
        raise InputError(f"{root}: no image of the split {split!r} is left to use")
    records = Records(
        name=f"{root.name} {split}",
        image_paths=[str(root / "images" / images[number][0]) for number in kept],
        captions=[caption for number in kept for caption in texts[number]],
        caption_image=[i for i, number in enumerate(kept) for _ in texts[number]],
        image_labels=[images[number][1] for number in kept],
        image_ids=kept,
        class_names=class_names,
        skipped=tuple(problems.skipped),
        recoded=tuple(recoded),
    )
    if verbose:
        print(records.summary())
    return Loaded(records, lambda: batches.pairs(records, image_size))


def _read_classes(root):
    path = root / "classes.txt"
    table = read_numbered(path)
    for position, (number, (line, _)) in enumerate(table.items(), start=1):
        if number != position:
            raise InputError(f"{path}:{line}: expected class {position}, found {number}")
    return tuple(name for _, name in table.values())


def _read_images(root, class_names, problems):
    """`{image number: (file name, label)}` of every image that the tables list."""
    names = read_numbered(root / "images.txt")
    path = root / "image_class_labels.txt"
    labels = read_numbered(path)
    images = {}
    for number, (line, name) in names.items():
        where = f"{root / 'images.txt'}:{line}"
        if not safe_relative(name):
            problems.bad("unsafe file names", where, f"{name!r} leads out of the data folder")
        elif number not in labels:
            problems.bad("images without class", where, f"image {number} has no line in {path}")
        else:
            line, label = labels[number]
            if not 1 <= (whole_number(label) or 0) <= len(class_names):
                problems.bad("unknown classes", f"{path}:{line}", f"unknown class {label!r}")
            else:
                images[number] = (name, int(label) - 1)
    return images


def _readable(root, class_names, images, in_split, chosen, problems):
    """The numbers of the split's photos that are there and whole; a class may be absent."""
    paths = {n: root / "images" / name for n, (name, label) in images.items() if label in chosen}
    there = {number for number, path in paths.items() if path.is_file()}
    for label in sorted(chosen - {images[number][1] for number in there}):
        problems.missing("missing classes", class_names[label])
    own = sorted(filter(in_split, paths))
    for number in own:
        if number not in there:
            problems.missing("missing photos", paths[number])
    kept = [number for number in own if number in there]
    faults = dict(zip(kept, check_images([paths[n] for n in kept]), strict=True))
    for number, why in faults.items():
        if why is not None:
            problems.bad("bad images", paths[number], why)
    return [number for number, why in faults.items() if why is None]


def _read_captions(root, captions, images, kept, problems):
    texts, recoded = {}, []
    read = read_captions(root, captions, [images[number][0] for number in kept])
    for number, (lines, why, where, clean) in zip(kept, read, strict=True):
        if why is None and len(lines) != CAPTIONS_PER_IMAGE:
            why = f"expected {CAPTIONS_PER_IMAGE} captions, found {len(lines)}"
        if why is None and "" in lines:
            where, why = f"{where}:{lines.index('') + 1}", "an empty caption"
        if why is not None:
            problems.bad("bad caption files", where, why)
            continue
        texts[number] = lines
        if not clean:
            recoded.append(str(where))
    return texts, recoded
