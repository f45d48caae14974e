"""Photos with captions in any of the layouts that people have, each image with its captions."""

import os
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from zoo.data.loaders.gather import Record, gather
from zoo.data.loaders.layouts import recognised
from zoo.data.records import Problems
from zoo.files.text_files import name_on_disk


class Captioned(NamedTuple):
    """Photos with their captions.

    ```python
    found = zoo.data.captioned_folder("flickr8k/")
    of_each = [found.photos[row] for row in found.caption_image]  # the photo of each caption
    ```

    Attributes:
        photos: N paths.
        captions: M strings.
        caption_image: int `(M,)`, the row of each caption's photo.
        recognised: one line on what was found.
    """

    photos: list[str]
    captions: list[str]
    caption_image: np.ndarray
    recognised: str


def captioned_folder(
    path: str | os.PathLike, images: str | os.PathLike | None = None, skip_bad: bool = False
) -> Captioned:
    """The photos and captions of a folder, in whichever of the usual layouts it is.

    ```python
    found = zoo.data.captioned_folder("flickr8k/")
    print(found.recognised)  # flickr8k: Kaggle's Flickr8k, captions.txt with photos in Images: …
    ```

    | layout | what is there |
    |---|---|
    | a table | `pairs.csv`, `pairs.tsv` or `pairs.jsonl` with `image` and `caption` |
    | imagefolder | `metadata.csv` or `.jsonl` with `file_name` and `text`, also in `train/` … |
    | Kaggle's Flickr8k | `captions.txt` beside `Images/` |
    | Kaggle's Flickr30k | `results.csv` beside `flickr30k_images/` |
    | Flickr's token file | `Flickr8k.token.txt` with its lists, or `results_20130124.token` |
    | Karpathy's JSON | `dataset_flickr8k.json`, `dataset_flickr30k.json`, `dataset_coco.json` |
    | COCO's captions | `captions_train2017.json` and others, also in `annotations/` |
    | a text file beside each picture | `beach.jpg` and `beach.txt`, a caption a line |
    | a Hugging Face datasets folder | what `save_to_disk` wrote |

    Args:
        path: the folder, or the file that holds the captions.
        images: the folder of the photos; None: the table's own, or one below it that has the first
            photos of the table.
        skip_bad: leave out what is bad, and photos that are not there, instead of raising.

    Returns:
        A `Captioned`. Splits are not looked at.

    Raises:
        InputError: if the layout is none of these, photos are not there, or a row is bad.
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
    return path.relative_to(root) if path.is_relative_to(root) else path


def read_layout(layout, problems, caption_column="caption"):
    """`(listed, splits)`; a split is None where nothing says so."""
    folder = layout.images
    found, splits, known = {}, {}, defaultdict(set)
    for row in layout.rows(problems):
        empty = [not isinstance(text, str) or not text.strip() for text in row.captions]
        if any(empty) or not row.captions:
            problems.bad("empty captions", row.where, f"expected text as {caption_column!r}")
        told = _relative(Path(row.image).as_posix(), folder)
        name = unicodedata.normalize("NFC", told)  # one image, however its name is written
        if name not in found:
            files = (name_on_disk(folder, told),)
            found[name] = Record(files, told, [], None, row.where)
        record = found[name]
        if splits.setdefault(name, row.split) != row.split:
            why = f"{told} is of the split {splits[name]!r} already"
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
    kept = [name for name, record in found.items() if record.captions]
    return [found[name] for name in kept], [splits[name] for name in kept]


def _relative(path, folder):
    """A path relative to the folder, if it is an absolute one that lies in it, else as it is."""
    if not os.path.isabs(path) or "\0" in path:
        return path
    for real in (os.path.abspath, os.path.realpath):
        for root in (os.path.abspath, os.path.realpath):
            if Path(real(path)).is_relative_to(root(folder)):
                return Path(real(path)).relative_to(root(folder)).as_posix()
    return path
