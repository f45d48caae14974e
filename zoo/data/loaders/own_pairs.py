"""Pictures and captions of one's own, in any of the layouts that people have."""

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halo_search.errors import InputError
from halo_search.files.text_files import comparable, name_on_disk
from zoo.data.loaders.gather import Record, gather
from zoo.data.loaders.layouts import recognised
from zoo.data.records import Problems, Records

MOST_HELD_OUT = 5000  # images of a split that nobody has named


class Captioned(NamedTuple):
    """N paths of photos, M captions, the row `(M,)` of each caption's photo, and one line on what
    was found.

    ```python
    found = zoo.data.captioned_folder("flickr8k/")
    of_each = [found.photos[row] for row in found.caption_image]  # the photo of each caption
    ```
    """

    photos: list[str]
    captions: list[str]
    caption_image: np.ndarray
    recognised: str


def captioned_folder(
    path: str | os.PathLike, images: str | os.PathLike | None = None, skip_bad: bool = False
) -> Captioned:
    """The photos and captions of a folder in one of the usual layouts, which it recognises.

    ```python
    found = zoo.data.captioned_folder("flickr8k/")
    print(found.recognised)  # flickr8k: Kaggle's Flickr8k, captions.txt with photos in Images: …
    ```

    These are `pairs.csv`, `.tsv` or `.jsonl` with `image` and `caption`; `metadata.csv` or `.jsonl`
    with `file_name` and `text`, also in `train/` … (imagefolder); `captions.txt` beside `Images/`
    (Kaggle's Flickr8k); `dataset_*.json` (Karpathy's); `captions_*.json`, also in `annotations/`
    (COCO's); or a text file beside each picture, a caption a line.

    Args:
        path: the folder, or the file that holds the captions.
        images: the folder of the photos; None: the table's own, or one below it that has them.
        skip_bad: leave out what is bad, and absent photos, instead of raising InputError.
    """
    layout = recognised(path, images)
    problems = Problems(skip_bad)
    listed, _ = read_layout(layout, problems)
    missing = "skip" if skip_bad else "error"
    records = gather(
        layout.source.name, listed, layout.images, 224, problems, missing, verbose=False
    ).records
    line = line_of(path, layout, records.num_images, records.num_captions)
    if records.skipped:
        line += f"; {len(records.skipped):,} rows or photos left out"
    return Captioned(
        list(records.image_paths), list(records.captions), np.asarray(records.caption_image), line
    )


def line_of(path, layout, photos, captions):
    """What was recognised, in one line."""
    root = Path(path).expanduser()
    table = "" if layout.source == root else f", {_below(layout.source, root)}"
    folder = "" if layout.images == root else f", photos in {_below(layout.images, root)}"
    return f"{path}: {layout.what}{table}{folder}: {photos:,} photos, {captions:,} captions"


def _below(path, root):
    """A path relative to `root` if it lies below it, else as it is."""
    return path.relative_to(root) if path.is_relative_to(root) else path


def read_layout(layout, problems, caption_column="caption"):
    """`(listed, splits)`; a split is None where nothing says so."""
    folder = layout.images
    records, splits, known = {}, {}, defaultdict(set)
    for row in layout.rows(problems):
        empty = [not isinstance(text, str) or not text.strip() for text in row.captions]
        if any(empty) or not row.captions:
            problems.bad("empty captions", row.where, f"expected text as {caption_column!r}")
        relative = _relative(Path(row.image).as_posix(), folder)
        name = comparable(relative)  # one image, however its name is written
        if name not in records:
            files = (name_on_disk(folder, relative),)
            records[name] = Record(files, relative, [], None, row.where)
        record = records[name]
        if splits.setdefault(name, row.split) != row.split:
            why = f"{relative} is of the split {splits[name]!r} already"
            problems.bad("images of two splits", row.where, why)
            continue
        for text, bad in zip(row.captions, empty, strict=True):
            if bad:
                continue
            if text.strip() in known[name]:
                problems.missing("duplicate pairs", row.where, f"{name} has this caption already")
                continue
            known[name].add(text.strip())
            record.captions.append(text)
    names = [name for name, record in records.items() if record.captions]
    return [records[name] for name in names], [splits[name] for name in names]


def load_split(
    root: str | os.PathLike,
    split: str,
    held_out_share: float = 0.1,
    seed: int = 0,
    skip_bad: bool = False,
    image_column: str = "image",
    caption_column: str = "caption",
    separator: str | None = None,
    images: str | os.PathLike | None = None,
) -> Records:
    """The records of one split of a folder of one's own, `"train"`, `"validation"` or `"test"`.

    The table's column `split` says which, or, where it names no validation or no test, a share of
    all images, up to 5,000, is drawn out of the others. An image may have several rows, in JSON
    Lines a list of captions; one that it has already is left out and reported.

    Args:
        root, images: see `captioned_folder`.
        split: which.
        held_out_share: of the images, for validation and for the test each, in (0, 0.5).
        seed: of the draw.
        skip_bad: leave out what is bad, and absent photos, and count them, instead of raising.
        image_column, caption_column: names of a table's columns, or keys.
        separator: between the fields of a table: one character, or `"tab"`; by default a comma in
            `.csv` and a tab in `.tsv`. Where it is a tab, quotes are a part of the text.

    Raises:
        InputError: if something is absent or not what it has to be, with file and line, a split
            has no image, or the share is out of range.
    """
    root = Path(root).expanduser()
    if not root.exists():
        raise InputError(f"{root}: no such folder")
    if not isinstance(held_out_share, int | float) or not 0 < held_out_share < 0.5:
        raise InputError(f"data: `held_out_share` must be in (0, 0.5); received {held_out_share}")
    problems = Problems(skip_bad)
    layout = recognised(root, images, (image_column, caption_column), separator)
    source, folder = layout.source, layout.images
    listed, splits = read_layout(layout, problems, caption_column)
    if split == "train":  # once for all splits
        count = sum(len(record.captions) for record in listed)
        print(line_of(root, layout, len(listed), count))
    if skip_bad:  # before the division, so that it is of the photos that are there
        there = [os.path.isfile(folder / record.files[0]) for record in listed]
        for record, exists in zip(listed, there, strict=True):
            if not exists:
                problems.missing("missing photos", folder / record.files[0])
        listed = [record for record, exists in zip(listed, there, strict=True) if exists]
        splits = [split for split, exists in zip(splits, there, strict=True) if exists]
    divided = _divide(splits, held_out_share, seed)
    empty = [name for name, images in divided.items() if not len(images)]
    if empty:
        raise InputError(
            f"{source}: expected three images at least, one for validation and one for the test; "
            f"found {len(listed)} with captions, and none for {', '.join(empty)}"
            f"{problems.summary()}"
        )
    split_problems = Problems(skip_bad)
    if split == "train":  # what is wrong with rows is said once
        split_problems.skipped = problems.skipped
    name = f"{source.name} {split}"
    missing = "skip" if skip_bad else "error"
    return gather(
        name, [listed[i] for i in divided[split]], folder, 224, split_problems, missing
    ).records


def _relative(path, folder):
    """A path relative to the folder, if it is an absolute one that lies in it, else as it is."""
    if not os.path.isabs(path) or "\0" in path:
        return path
    for real in (os.path.abspath, os.path.realpath):
        for root in (os.path.abspath, os.path.realpath):
            if Path(real(path)).is_relative_to(root(folder)):
                return Path(real(path)).relative_to(root(folder)).as_posix()
    return path


def _divide(splits, share, seed):
    """The indices of the images of each split."""
    named = {
        name: [index for index, split in enumerate(splits) if split == name]
        for name in ("train", "validation", "test")
    }
    free = named["train"] + [index for index, split in enumerate(splits) if split is None]
    order = np.random.default_rng(seed).permutation(sorted(free))
    count = min(MOST_HELD_OUT, max(1, int(share * len(splits) + 1e-9)))
    for name in ("test", "validation"):
        if not named[name]:
            named[name], order = order[:count], order[count:]
    return {**named, "train": order}
