"""Precomputed region features, in the files that SCAN published and its successors read."""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from halo_search.errors import InputError
from halo_search.files.array_files import read_array
from halo_search.files.text_files import existing_folder, read_lines, whole_number
from zoo.data.records import Loaded, Problems, Records
from zoo.data.records.sources import Features

SPLITS = ("train", "dev", "test", "testall")
CAPTIONS_PER_IMAGE = 5


def load(
    root: str | os.PathLike, split: str = "train", skip_bad: bool = False, verbose: bool = True
) -> Loaded:
    """Reads one split of precomputed region features, float `(regions, dim)`, through a memory map,
    with its captions; every image is a class of its own.

    Args:
        root: the folder with `{split}_ims.npy`, float `(rows, regions, dim)`, `{split}_caps.txt`,
            one caption a line, five an image, and perhaps `{split}_ids.txt`, an id a line for
            every image, row or caption. Images may be stored once, or five times in a row.
            COCO's benchmarks ask for the ids of captions: `{split}_caption_ids.txt`, one a line
            beside `_caps.txt`.
        split: `"train"`, `"dev"`, `"test"` or, for COCO, `"testall"`.
        skip_bad, verbose: as of `zoo.data.cub.load`, as are Returns and Raises.

    Reference: Lee et al., "Stacked Cross Attention for Image-Text Matching" (ECCV 2018).
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    root = existing_folder(root, "data folder")
    problems = Problems(skip_bad)
    path = root / f"{split}_ims.npy"
    array = open_array(path)
    captions_path = root / f"{split}_caps.txt"
    lines = read_lines(captions_path)
    num_images, every = _layout(path, len(array), captions_path, len(lines))
    ids = _ids(root / f"{split}_ids.txt", num_images, len(array), len(lines), problems)
    caption_ids = _caption_ids(root / f"{split}_caption_ids.txt", captions_path, len(lines))
    has_text = [bool(text.strip()) for text in lines]
    for line in np.flatnonzero(~np.array(has_text)):
        problems.bad("empty captions", f"{captions_path}:{line + 1}", "an empty caption")
    owner = np.arange(len(lines)) // CAPTIONS_PER_IMAGE
    images = [image for image in np.unique(owner[has_text]) if ids[image] is not None]
    for image in sorted(set(range(num_images)) - set(owner[has_text])):
        where = f"{captions_path}:{CAPTIONS_PER_IMAGE * image + 1}"
        problems.bad("images without captions", where, f"image {image} has none that is not empty")
    if not images:
        raise InputError(f"{captions_path}: no image with captions is left to use")
    position = {image: index for index, image in enumerate(images)}
    chosen = [line for line in np.flatnonzero(has_text) if owner[line] in position]
    records = Records(
        name=f"{root.name} {split}",
        image_paths=[f"{path}#{image * every}" for image in images],
        captions=[lines[line].strip() for line in chosen],
        caption_image=[position[owner[line]] for line in chosen],
        image_labels=np.arange(len(images)),
        image_ids=[ids[image] for image in images],
        skipped=tuple(problems.skipped),
        caption_ids=None if caption_ids is None else [caption_ids[line] for line in chosen],
    )
    if verbose:
        rows, regions, dim = array.shape
        stored = "once" if every == 1 else f"{every} times"
        print(f"{records.summary()}; {regions} regions x {dim}, {rows:,} rows, stored {stored}")
    return Loaded(records, lambda: _pairs(records))


def features(records: Records) -> Features:
    """The `sources.Features` of the records of `load`, or of a selection of them; rows are read
    when a batch needs them. Raises InputError for other records."""
    places = [str(path).rpartition("#") for path in records.image_paths]
    files = {place[0] for place in places}
    if len(files) != 1 or not all(place[2].isdigit() for place in places):
        raise InputError(f"{records.name}: expected records of one `regions.load`")
    return Features(open_array(Path(files.pop())), [int(place[2]) for place in places])


def open_array(path: str | os.PathLike) -> np.ndarray:
    """A memory map of features `(rows, regions, dim)` in a whole `.npy` file."""
    array = read_array(path)
    if array.dtype not in (np.float16, np.float32, np.float64) or not array.dtype.isnative:
        raise InputError(f"{path}: expected float16, float32 or float64, found {array.dtype}")
    if array.ndim != 3 or not array.size or not array.flags.c_contiguous:
        raise InputError(f"{path}: expected shape (rows, regions, dim), found {array.shape}")
    return array


def _layout(path, rows, captions_path, captions):
    """How many images there are, and how many rows each of them has."""
    if rows * CAPTIONS_PER_IMAGE == captions:
        return rows, 1
    if rows == captions and captions % CAPTIONS_PER_IMAGE == 0:
        return rows // CAPTIONS_PER_IMAGE, CAPTIONS_PER_IMAGE
    raise InputError(
        f"{captions_path}:{captions}: expected {rows} captions, or {CAPTIONS_PER_IMAGE} times as "
        f"many, for the {rows} rows of {path.name}; found {captions}"
    )


def _ids(path, num_images, rows, captions, problems):
    """The id of each image, or None for one that is left out; numbers from 0 without a file."""
    if not path.exists():
        return list(range(num_images))
    lines = read_lines(path)
    if len(lines) not in (num_images, rows, captions):
        raise InputError(f"{path}:{len(lines)}: expected {num_images} or {captions} ids")
    step, seen, ids = len(lines) // num_images, set(), []
    for image in range(num_images):
        line, text = image * step + 1, lines[image * step].strip()
        number = whole_number(text)
        ids.append((text or None) if number is None else number)
        if not text:
            problems.bad("bad ids", f"{path}:{line}", "an empty line")
        elif text in seen:
            problems.bad("duplicate images", f"{path}:{line}", f"id {text} occurs twice")
            ids[-1] = None
        seen.add(text)
    return ids


def _caption_ids(path, captions_path, expected):
    """The ids of the captions, one a line, of which none occurs twice; None without a file."""
    if not path.exists():
        return None
    lines, ids = read_lines(path), {}
    if len(lines) != expected:
        raise InputError(
            f"{path}:{len(lines)}: expected {expected} ids, one a line of {captions_path.name}"
        )
    for line, text in enumerate(lines, 1):
        number = whole_number(text.strip())
        if number is None:
            raise InputError(f"{path}:{line}: expected the id of a caption, found {text!r}")
        first = ids.setdefault(number, line)
        if first != line:
            raise InputError(f"{path}:{line}: id {number} occurs twice, first in line {first}")
    return list(ids)


def _pairs(records):
    """A dataset of one caption with its image's regions, in the order of the captions."""
    columns = {
        "captions": list(records.captions),
        "image_labels": records.caption_labels,
        "caption_labels": records.caption_labels,
    }
    owner = tf.constant(records.caption_image)
    shown = features(records).take(tf.data.Dataset.from_tensor_slices(owner).batch(1)).unbatch()
    pairs = tf.data.Dataset.zip(tf.data.Dataset.from_tensor_slices(columns), shown)
    return pairs.map(lambda pair, regions: {"images": regions, **pair})
